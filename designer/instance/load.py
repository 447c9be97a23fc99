"""Reads an instance file and resolves it: catalog, models, defaults, and every rule that spans several fields."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from designer.catalog import Catalog, load_catalog
from designer.catalog.components import Price
from designer.errors import InputError, InstanceError, Problem
from designer.instance.cluster import Location, resolve_cluster
from designer.instance.instance import Cluster, DirectDemand, Instance, Job, Parallelism
from designer.instance.racks import rack_problems
from designer.instance.read_existing import read_existing
from designer.instance.schema import (
    DEFAULT_ORDER,
    DemandSection,
    InstanceFile,
    JobSection,
    ModelSection,
    ParallelismSection,
)
from designer.source import Source, read_yaml, validate
from designer.units import cents
from designer.workload.model_files import read_hf_config, read_megatron_args
from designer.workload.model_library import load_model_library
from designer.workload.phases import phase_of_demand, phases_of_job
from designer.workload.placement import MisalignedGroupError, digits, domain_group, merge
from designer.workload.transformer import Transformer, inconsistencies


def load_instance(path: Path | str) -> Instance:
    """The instance of a YAML (or JSON) file.

    Raises:
        InstanceError: the file cannot be read or has problems; all of them are named.
        CatalogError: a catalog that it names cannot be used.
    """
    source = read_yaml(path, InstanceError)
    return _Resolver(source, Path(path).parent).resolve()


def instance_from_document(
    document: Mapping[str, Any], base: Path | None = None, catalog: Catalog | None = None
) -> Instance:
    """The instance of plain data, as a YAML file would hold it; paths in it are relative to `base`.

    A `catalog` takes the place of the one that the document names.

    Raises:
        InstanceError, CatalogError: as for `load_instance`.
    """
    return _Resolver(Source("instance", dict(document)), base or Path()).resolve(catalog)


class _Resolver:
    """Turns a source into an instance, gathering problems on the way."""

    def __init__(self, source: Source, base: Path) -> None:
        self.source, self.base = source, base
        self.problems: list[Problem] = []
        self.file = validate(InstanceFile, source, InstanceError)

    def refuse(self, location: Location, found: object, allowed: str) -> None:
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
        self.problems.append(Problem(self.source.path, self.source.line(location), field, str(found), allowed))

    def resolve(self, catalog: Catalog | None = None) -> Instance:
        file = self.file
        catalog = catalog or load_catalog(file.catalog, self.base)
        cluster = resolve_cluster(file.cluster, catalog, self.refuse)
        if cluster is None:
            raise InstanceError(self.problems)
        workload = [self._item(number, item, cluster) for number, item in enumerate(file.workload)]
        self._search(cluster, catalog)
        self._layout(cluster)
        self._training(cluster)
        jobs = tuple(item for item in workload if item is not None)
        if len(jobs) == len(workload):
            self._requirements(jobs, cluster)
        existing = read_existing(file, cluster, catalog, self.base, self.refuse)
        if self.problems:
            raise InstanceError(self.problems)
        return Instance(
            file.name,
            cluster,
            jobs,
            file.requirements,
            file.search,
            file.cabling,
            file.energy,
            file.objective,
            catalog,
            cast("Mapping[str, object]", self.source.data),
            file.layout,
            self._gpu_price(cluster),
            existing,
        )

    def _item(self, number: int, item: JobSection | DemandSection, cluster: Cluster) -> Job | DirectDemand | None:
        at = ("workload", number)
        before = len(self.problems)
        result = self._demand(at, item, cluster) if isinstance(item, DemandSection) else self._job(at, item, cluster)
        return result if len(self.problems) == before else None

    def _demand(self, at: Location, item: DemandSection, cluster: Cluster) -> DirectDemand:
        rail = item.across == "rail"
        unit = cluster.hb_domain if rail else 1
        gpus = item.gpus or cluster.gpus - item.first_gpu
        members = gpus // unit
        group = members if item.group == "all" else item.group
        self._range(at, item.first_gpu, gpus, unit, cluster)
        what = "domains" if rail else "GPUs"
        if group < 1 or members % max(group, 1):
            self.refuse((*at, "group"), item.group, f"'all' or a divisor of the {members} {what} that take part")
        if item.demand == "halving-doubling" and group & (group - 1):
            self.refuse((*at, "group"), item.group, "a power of two for halving-doubling")
        return DirectDemand(item.name or item.demand, item.demand, group, item.by, item.across, item.first_gpu, gpus)

    def _range(self, at: Location, first: int, gpus: int, unit: int, cluster: Cluster) -> None:
        if first + gpus > cluster.gpus or gpus < 1:
            allowed = f"GPUs within the {cluster.gpus} of the cluster"
            self.refuse((*at, "gpus"), f"{gpus} GPUs from {first} on", allowed)
        elif first % unit or (gpus % unit and gpus > unit):
            allowed = f"whole HB domains of {unit} GPUs"
            self.refuse((*at, "first_gpu" if first % unit else "gpus"), f"{gpus} GPUs from {first} on", allowed)

    def _job(self, at: Location, item: JobSection, cluster: Cluster) -> Job | None:
        model, options = self._model(at, item)
        if model is None:
            return None
        if item.seq_length is None and isinstance(item.model, str) and item.model.endswith(".json"):
            allowed = "the length of the training sequences: the model file only says how long they may be"
            self.refuse((*at, "seq_length"), "nothing", allowed)
        degrees = self._parallelism(item, options, cluster)
        micro_batch = item.micro_batch or int(options.get("micro_batch", 1))
        global_batch = item.global_batch or options.get("global_batch")
        if global_batch is None:
            self.refuse((*at, "global_batch"), "nothing", "the sequences of one iteration")
            return None
        if global_batch % (degrees.dp * micro_batch):
            allowed = f"a multiple of dp x micro_batch = {degrees.dp * micro_batch}"
            self.refuse((*at, "global_batch"), global_batch, allowed)
        self._degrees(at, model, degrees, item, cluster)
        job = Job(
            item.name or model.name,
            model,
            degrees,
            int(global_batch),
            micro_batch,
            item.seq_length or model.seq_length,
            item.gradient_bytes,
            item.sequence_parallel,
            item.context_exchange,
            tuple(tuple(str(name) for name in names) for names in item.mixes),
            item.first_gpu,
        )
        self._alignment(at, job, cluster)
        return job

    def _model(self, at: Location, item: JobSection) -> tuple[Transformer | None, dict[str, Any]]:
        if isinstance(item.model, ModelSection):
            return self._inline_model(at, item.model), {}
        library = load_model_library()
        if item.model in library:
            return library[item.model], {}
        path = self.base / item.model
        if "/" not in item.model and "." not in item.model and not path.exists():
            allowed = f"one of: {', '.join(library)}; inline sizes; or the path of a config.json or Megatron arguments"
            self.refuse((*at, "model"), repr(item.model), allowed)
            return None, {}
        try:
            if path.suffix == ".json":
                return read_hf_config(path, item.seq_length), {}
            model, options = read_megatron_args(path)
        except InputError as error:
            self.problems += error.problems
            return None, {}
        return model, dict(options)

    def _inline_model(self, at: Location, sizes: ModelSection) -> Transformer | None:
        given = sizes.model_dump(exclude_none=True)
        if "head_dim" not in given and sizes.hidden % sizes.heads:
            self.refuse((*at, "model", "head_dim"), "nothing", "a head_dim, as heads does not divide hidden")
            return None
        ffn = given.setdefault("ffn_hidden", 4 * sizes.hidden)
        defaults: dict[str, Any] = {"kv_heads": sizes.heads, "head_dim": sizes.hidden // sizes.heads}
        if sizes.experts:
            defaults |= {"moe_ffn_hidden": ffn, "moe_layers": sizes.layers}
        fields: dict[str, Any] = {"name": "model", "source": "the instance"} | defaults | given
        model = Transformer(**fields)
        for field, found, allowed in inconsistencies(model):
            self.refuse((*at, "model", field), found, allowed)
        return model

    def _parallelism(self, item: JobSection, options: Mapping[str, Any], cluster: Cluster) -> Parallelism:
        file: dict[str, Any] = dict(options.get("parallelism", {}))
        given = item.parallelism.model_dump(exclude_unset=True) if item.parallelism else {}
        merged = ParallelismSection.model_validate(file | given)
        dp = merged.dp
        gpus = item.gpus or cluster.gpus
        others = merged.tp * merged.pp * merged.cp
        if "dp" not in given and file and gpus % others == 0:
            dp = gpus // others
        order = tuple((merged.order or DEFAULT_ORDER).split("-"))
        return Parallelism(merged.tp, merged.pp, dp, merged.cp, merged.ep, merged.interleave, order)

    def _degrees(
        self, at: Location, model: Transformer, degrees: Parallelism, item: JobSection, cluster: Cluster
    ) -> None:
        product = f"tp {degrees.tp} x pp {degrees.pp} x dp {degrees.dp} x cp {degrees.cp} = {degrees.gpus}"
        wanted = item.gpus or cluster.gpus
        if degrees.gpus != wanted:
            allowed = f"degrees whose product is the {wanted} GPUs of the {'job' if item.gpus else 'cluster'}"
            if item.gpus is None:
                allowed += ", or a field gpus for a job that does not fill it"
            self.refuse((*at, "parallelism"), product, allowed)
        else:
            self._range(at, item.first_gpu, wanted, cluster.hb_domain, cluster)
        if degrees.dp % degrees.ep:
            self.refuse((*at, "parallelism", "ep"), degrees.ep, f"a divisor of dp = {degrees.dp}")
        if degrees.ep > 1 and not model.experts:
            self.refuse((*at, "parallelism", "ep"), degrees.ep, f"1, as {model.name} has no experts")
        if model.experts and model.experts % degrees.ep:
            self.refuse((*at, "parallelism", "ep"), degrees.ep, f"a divisor of the {model.experts} experts")
        stages = degrees.pp * degrees.interleave
        if degrees.interleave > 1 and degrees.pp == 1:
            self.refuse((*at, "parallelism", "interleave"), degrees.interleave, "1 without pipeline parallelism")
        elif stages > model.layers:
            allowed = f"at most the {model.layers} layers of {model.name}"
            self.refuse((*at, "parallelism", "pp"), f"{stages} stages", allowed)
        if model.heads % degrees.tp:
            self.refuse((*at, "parallelism", "tp"), degrees.tp, f"a divisor of the {model.heads} attention heads")

    def _alignment(self, at: Location, job: Job, cluster: Cluster) -> None:
        digit = digits(job.parallelism)
        replicas = merge([digit["cp"], digit["ep"], digit["dp"]])
        groups = [("tp", digit["tp"]), ("cp", digit["cp"]), ("ep", digit["ep"]), ("pp", digit["pp"])]
        for name, group in [*groups, *(("dp", part) for part in replicas)]:
            try:
                if group.size > 1:
                    domain_group(group, cluster.hb_domain)
            except MisalignedGroupError as error:
                allowed = "groups that fill HB domains evenly or have one rank in each; change the degrees or the order"
                self.refuse((*at, "parallelism", name), error, allowed)

    def _search(self, cluster: Cluster, catalog: Catalog) -> None:
        search = self.file.search
        for number, key in enumerate(search.switches or ()):
            if key not in catalog.switches:
                allowed = f"a switch of the catalog, one of: {', '.join(catalog.switches)}"
                self.refuse(("search", "switches", number), repr(key), allowed)
        nics = {kind.nic.key: kind.nic for kind in cluster.kinds()}
        named = ", ".join(nics)
        # Kinds of servers meet on one network: their NICs run as one port each.
        offered = [1] if cluster.irregular else sorted({mode.ports for mode in cluster.nic.modes})
        if search.planes is not None and not set(search.planes) & set(offered):
            allowed = f"at least one number of ports that {named} offers: {', '.join(map(str, offered))}"
            self.refuse(("search", "planes"), search.planes, allowed)
        spoken = list(dict.fromkeys(protocol for nic in nics.values() for protocol in nic.protocols))
        if search.protocols is not None and not set(search.protocols) & set(spoken):
            self.refuse(("search", "protocols"), search.protocols, f"a protocol of {named}: {', '.join(spoken)}")

    def _layout(self, cluster: Cluster) -> None:
        if self.file.layout is None:
            return
        if "cabling" in self.file.model_fields_set:
            self.refuse(("cabling",), "lengths beside a layout", "one of the two: lengths follow from a layout")
        if self.file.objective not in ("capex", "tco"):
            self.refuse(("objective",), f"{self.file.objective} with a layout", "capex or tco")
        for field, found, allowed in rack_problems(self.file.layout, cluster):
            self.refuse(("layout", field), found, allowed)

    def _gpu_price(self, cluster: Cluster) -> Price | None:
        """The instance's price of a GPU, which no source says, or else the catalog's."""
        gpu_usd = self.file.training.gpu_usd
        return cluster.gpu.price if gpu_usd is None else Price(cents(gpu_usd), "", "", assumed=True)

    def _training(self, cluster: Cluster) -> None:
        if self.file.objective != "cost_of_training":
            return
        if self._gpu_price(cluster) is None:
            allowed = f"the price of one GPU in USD, as the catalog has none of {cluster.gpu.key}"
            self.refuse(("training", "gpu_usd"), "nothing", allowed)
        jobs = [item for item in self.file.workload if isinstance(item, JobSection)]
        if len(self.file.workload) != 1 or not jobs:
            allowed = "a workload of one job with a model, whose step has a time"
            self.refuse(("objective",), self.file.objective, allowed)
        if cluster.irregular or cluster.existing or self.file.layout is not None:
            allowed = "capex or tco with servers of several kinds, with switches that are there, and with a layout"
            self.refuse(("objective",), self.file.objective, allowed)

    def _requirements(self, jobs: tuple[Job | DirectDemand, ...], cluster: Cluster) -> None:
        requirements = self.file.requirements
        patterns = {str(name): str(pattern) for name, pattern in requirements.collectives.items()}
        names: set[str] = set()
        try:
            for item in jobs:
                if isinstance(item, Job):
                    phases = phases_of_job(item, patterns, {}, cluster.hb_domain)
                else:
                    phases = [phase_of_demand(item, {})]
                names |= {phase.name for phase in phases}
        except MisalignedGroupError:
            return  # already told, with its field
        except ValueError as error:  # halving-doubling on a group that is no power of two
            self.refuse(("requirements", "collectives"), error, "another algorithm for this group size")
            return
        if requirements.max_step_overhead is not None and (len(jobs) != 1 or not isinstance(jobs[0], Job)):
            allowed = "a workload of one job with a model, whose step has a time"
            self.refuse(("requirements", "max_step_overhead"), requirements.max_step_overhead, allowed)
        for name in requirements.throughput:
            if name not in names | {"tp", "cp", "ep", "dp", "pp"}:
                allowed = f"a phase of the workload: {', '.join(sorted(names))}"
                self.refuse(("requirements", "throughput", name), repr(name), allowed)
