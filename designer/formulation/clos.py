"""The integer program of the Clos family (CP-SAT): leaf ports, uplinks, spines, pods, cores and multiplicities.

One program speaks of one choice of hardware: planes, rails of a fabric, and for each tier the switch, its port modes
and its cabling. `clos_search.py` runs through those choices, best bound first. Every quantity is a whole number: money
in cents, capacity in links.

    sets        o  leaf options: ports d to endpoints, hence leaves L and the uplinks they need; with three tiers
                   also leaves of a pod n, hence pods G and the pod's uplinks
    variables   x_o in {0, 1}   the option taken
                S spines (of a pod), k links of a leaf to each of them, u = S k uplinks of a leaf
                v uplinks of a spine, in c cores by e links; a core serves q spines of a pod; T = S v uplinks of a pod
"""

# OR-Tools types some arguments with bare generics.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread

from ortools.sat.python import cp_model

from designer.formulation.hardware import LeafKind, TierKind

Var = cp_model.IntVar
Linear = cp_model.LinearExprT
MOST_CENTS = 1 << 52
WATCH_S = 0.05
ShouldStop = Callable[[], bool]


@contextmanager
def watched(solver: cp_model.CpSolver, should_stop: ShouldStop | None) -> Generator[None]:
    """While the solver runs, a thread asks `should_stop` and ends the search when it turns true."""
    if should_stop is None:
        yield
        return
    done = Event()

    def watch() -> None:
        while not done.wait(WATCH_S):
            # Again and again, as a stop that comes before the solver has begun is lost.
            if should_stop():
                solver.stop_search()

    watcher = Thread(target=watch, daemon=True, name="watcher")
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@dataclass(frozen=True)
class LostNeed:
    """What must be left after `count` losses of a `kind` above the leaves: uplinks of a leaf, and of a pod."""

    kind: str
    count: int
    leaf_links: int
    pod_links: int = 0


@dataclass(frozen=True)
class LeafOption:
    """A way to attach the endpoints: `down` ports a leaf, hence `leaves`; needs in whole links; costs in cents.

    `base_cents` are all leaves and host links of the whole network. With three tiers `leaves_per_pod` is set, and
    `pods`, `last_pod_leaves` and `pod_links` follow. `bound_cents` is below any network with this option.
    """

    down: int
    leaves: int
    base_cents: int
    bound_cents: int
    free_cages: int
    free_ports: int
    leaf_links: int
    lost: tuple[LostNeed, ...]
    leaves_per_pod: int = 0
    pods: int = 1
    last_pod_leaves: int = 0
    pod_links: int = 0


@dataclass(frozen=True)
class Hardware:
    """Models, modes and media of the tiers, and their unit costs in cents."""

    leaf: LeafKind
    spine: TierKind
    core: TierKind | None
    spine_cents: int
    core_cents: int
    leaf_spine_cents: tuple[int, int, int]
    spine_core_cents: tuple[int, int, int]


@dataclass(frozen=True)
class Rules:
    """What holds for every network of the program: number of equal fabrics, routing, bundles, fixed uplinks."""

    fabrics: int
    ecmp: bool
    symmetric: bool
    fixed_uplinks: int | None


@dataclass(frozen=True)
class Answer:
    """A solution and what the solver proved; `bound_cents` is None where nothing lies below the cutoff."""

    status: str
    cost_cents: int | None
    bound_cents: int | None
    option: LeafOption | None = None
    spines: int = 0
    bundle: int | None = None
    uplinks: int = 0
    spine_uplinks: int = 0
    core_bundle: int = 0
    core_positions: int = 0


class ClosProgram:
    """The program for `options` on `hardware`. Each `add_` method is one family of constraints."""

    def __init__(self, options: list[LeafOption], hardware: Hardware, rules: Rules) -> None:
        self.options, self.hardware, self.rules = options, hardware, rules
        self.model = cp_model.CpModel()
        self.add_leaf_choice()
        self.add_leaf_uplinks()
        if hardware.core is None:
            self.add_spine_ports()
        else:
            self.add_pod_ports()
            self.add_core_groups()
        self.add_survivability()
        self.add_cost()

    def _var(self, most: int, name: str, least: int = 0) -> Var:
        return self.model.new_int_var(least, max(least, most), name)

    def _product(self, one: Var, other: Var, most: int, name: str) -> Var:
        result = self._var(most, name)
        self.model.add_multiplication_equality(result, [one, other])
        return result

    def _ceil(self, value: Var, per_cage: int, most: int, name: str) -> Var:
        """Cages that `value` ports take, `per_cage` to a cage."""
        if per_cage == 1:
            return value
        cages = self._var(-(-most // per_cage), name)
        self.model.add(cages * per_cage >= value)
        self.model.add(cages * per_cage <= value + per_cage - 1)
        return cages

    def _chosen(self, values: list[int]) -> cp_model.LinearExprT:
        """The value of the option taken: sum over o of value_o x_o."""
        return cp_model.LinearExpr.weighted_sum(self.take, values)

    def _chosen_var(self, values: list[int], name: str) -> Var:
        result = self._var(max(values), name, min(values))
        self.model.add(result == self._chosen(values))
        return result

    def add_leaf_choice(self) -> None:
        """Exactly one leaf option: sum over o of x_o = 1; it fixes L, and with three tiers n and G."""
        self.take = [self.model.new_bool_var(f"take_{number}") for number in range(len(self.options))]
        self.model.add_exactly_one(self.take)
        self.leaves = self._chosen_var([option.leaves for option in self.options], "leaves")
        self.pods = self._chosen_var([option.pods for option in self.options], "pods")

    def add_leaf_uplinks(self) -> None:
        """A leaf's uplinks fit its free cages and ports and carry X(d): u = S k, u >= need_o, u <= free_o.

        The need is throughput x X(d) over the link's rate, the cut function of the traffic (see `workload.cuts`).
        Where bundles may be uneven, u is any number, S <= u, and k the larger bundle, S k >= u; cables that carry
        several links to one spine keep bundles even.
        """
        most = max(option.free_ports for option in self.options)
        self.most_uplinks = most
        self.uplinks = self._var(most, "uplinks", 1)
        self.spines = self._var(most, "spines", 1)
        self.bundle = self._var(most, "bundle", 1)
        spine_links = self._product(self.spines, self.bundle, 2 * most, "spine_links")
        if self.rules.symmetric or self.hardware.spine.medium.bundle > 1:
            self.model.add(self.uplinks == spine_links)
        else:
            self.model.add(self.spines <= self.uplinks)
            self.model.add(self.uplinks <= spine_links)
            self.model.add(self.uplinks >= spine_links - self.spines + 1)
        self.model.add(self.uplinks >= self._chosen([option.leaf_links for option in self.options]))
        self.model.add(self.uplinks <= self._chosen([option.free_ports for option in self.options]))
        up_mode = self.hardware.spine.lower.up_mode
        per_cage = up_mode.ports_per_cage if up_mode else 1
        self.uplink_cages = self._ceil(self.uplinks, per_cage, most, "uplink_cages")
        self.model.add(self.uplink_cages <= self._chosen([option.free_cages for option in self.options]))
        if self.rules.fixed_uplinks is not None:
            self.model.add(self.uplinks == self.rules.fixed_uplinks)
        if self.hardware.spine.medium.bundle > 1:
            self.model.add_modulo_equality(0, self.bundle, self.hardware.spine.medium.bundle)

    def add_spine_ports(self) -> None:
        """Two tiers: a spine has a link bundle from every leaf, L k <= its ports.

        With uneven bundles the L u links are dealt round the spines: the fullest has ceil(L u / S) <= its ports.
        """
        tier = self.hardware.spine.tier
        radix, per_cage = tier.switch.radix(tier.down_mode), tier.down_mode.ports_per_cage
        most_links = max(option.leaves for option in self.options) * self.most_uplinks
        self.leaf_links = self._product(self.leaves, self.uplinks, most_links, "leaf_spine_links")
        if self.rules.symmetric:
            ports = self._product(self.leaves, self.bundle, radix, "spine_ports")
            cages = self._ceil(ports, per_cage, radix, "spine_cages")
            self.model.add(cages <= tier.switch.cages)
            most = self.most_uplinks * tier.switch.cages
            self.spine_down_cages = self._product(self.spines, cages, most, "spine_down_cages")
            return
        few, more = self._var(radix, "fewer_ports"), self._var(self.most_uplinks, "fuller_spines")
        self.model.add_division_equality(few, self.leaf_links, self.spines)
        self.model.add_modulo_equality(more, self.leaf_links, self.spines)
        has_more = self.model.new_bool_var("has_more")
        self.model.add(more >= 1).only_enforce_if(has_more)
        self.model.add(more == 0).only_enforce_if(~has_more)
        self.model.add(few + 1 <= radix).only_enforce_if(has_more)
        few_cages = self._ceil(few, per_cage, radix, "few_cages")
        full = self._var(radix + 1, "full_ports")
        self.model.add(full == few + 1)
        full_cages = self._ceil(full, per_cage, radix + 1, "full_cages")
        self.model.add(full_cages <= tier.switch.cages).only_enforce_if(has_more)
        self.model.add(few_cages <= tier.switch.cages)
        rest = self._var(self.most_uplinks, "other_spines")
        self.model.add(rest == self.spines - more)
        size = self.most_uplinks * (tier.switch.cages + 1)
        one = self._product(more, full_cages, size, "cages_of_full")
        other = self._product(rest, few_cages, size, "cages_of_others")
        self.spine_down_cages = self._var(2 * size, "spine_down_cages")
        self.model.add(self.spine_down_cages == one + other)

    def add_pod_ports(self) -> None:
        """Three tiers: a spine has n k ports down and v up, together within its cages and ports.

        The last pod has fewer leaves and as many spines; their cages are counted as used.
        """
        tier, core = self.hardware.spine.tier, self.hardware.core
        if core is None or core.lower.up_mode is None:
            raise ValueError("pods without cores")
        down_per_cage, up_per_cage = tier.down_mode.ports_per_cage, core.lower.up_mode.ports_per_cage
        radix, up_radix = tier.switch.radix(tier.down_mode), tier.switch.radix(core.lower.up_mode)
        most_leaves = max(option.leaves for option in self.options)
        self.leaf_links = self._product(self.leaves, self.uplinks, most_leaves * self.most_uplinks, "leaf_spine_links")
        per_pod = self._chosen_var([option.leaves_per_pod for option in self.options], "leaves_per_pod")
        last = self._chosen_var([option.last_pod_leaves for option in self.options], "last_pod_leaves")
        ports = self._product(per_pod, self.bundle, radix, "spine_down_ports")
        last_ports = self._product(last, self.bundle, radix, "last_spine_down_ports")
        cages = self._ceil(ports, down_per_cage, radix, "spine_cages")
        last_cages = self._ceil(last_ports, down_per_cage, radix, "last_spine_cages")
        self.most_spine_uplinks = up_radix
        self.spine_uplinks = self._var(up_radix, "spine_uplinks", 1)
        self.spine_uplink_cages = self._ceil(self.spine_uplinks, up_per_cage, up_radix, "spine_uplink_cages")
        self.model.add(cages + self.spine_uplink_cages <= tier.switch.cages)
        self.model.add(ports + self.spine_uplinks <= tier.switch.max_ports)
        most_pods = max(option.pods for option in self.options)
        self.most_spines = most_spines = most_pods * self.most_uplinks
        self.all_spines = self._product(self.pods, self.spines, most_spines, "all_spines")
        full_spines = self._var(most_spines, "spines_of_full_pods")
        self.model.add(full_spines == self.all_spines - self.spines)
        most_cages = most_spines * tier.switch.cages
        full = self._product(full_spines, cages, most_cages, "cages_of_full_pods")
        rest = self._product(self.spines, last_cages, self.most_uplinks * tier.switch.cages, "cages_of_last_pod")
        self.spine_down_cages = self._var(2 * most_cages, "spine_down_cages")
        self.model.add(self.spine_down_cages == full + rest)
        self.pod_links = self._product(self.spines, self.spine_uplinks, self.most_uplinks * up_radix, "pod_uplinks")
        self.model.add(self.pod_links >= self._chosen([option.pod_links for option in self.options]))

    def add_core_groups(self) -> None:
        """Cores in groups: v = c e links of a spine to its c cores, S = g q, G q e <= ports of a core, g c cores."""
        core = self.hardware.core
        if core is None:
            raise ValueError("core groups without cores")
        radix = core.tier.switch.radix(core.tier.down_mode)
        up_most = self.most_spine_uplinks
        self.core_bundle = self._var(radix, "core_bundle", 1)
        group_cores = self._var(up_most, "cores_of_group", 1)
        self.model.add_multiplication_equality(self.spine_uplinks, [self.core_bundle, group_cores])
        self.core_positions = self._var(self.most_uplinks, "core_positions", 1)
        groups = self._var(self.most_uplinks, "core_groups", 1)
        self.model.add_multiplication_equality(self.spines, [self.core_positions, groups])
        pod_share = self._product(self.core_positions, self.core_bundle, radix, "core_ports_of_pod")
        ports = self._product(pod_share, self.pods, radix, "core_ports")
        cages = self._ceil(ports, core.tier.down_mode.ports_per_cage, radix, "core_cages")
        self.model.add(cages <= core.tier.switch.cages)
        most_cores = self.most_uplinks * up_most
        self.cores = self._product(groups, group_cores, most_cores, "cores")
        self.core_group_cores = group_cores
        self.pod_share = pod_share
        self.core_cages = self._product(self.cores, cages, most_cores * core.tier.switch.cages, "core_cages_all")
        if core.medium.bundle > 1:
            self.model.add_modulo_equality(0, self.core_bundle, core.medium.bundle)

    def add_survivability(self) -> None:
        """After f losses above the leaves the rest still carries its share of every floor.

        f spines lost: u - f k uplinks of a leaf and T - f v of a pod are left. f leaf-spine links: u - f; f spine-core
        links: T - f; f cores: T - f q e (best splitting). ECMP at a hop splits evenly over the links it has, so a link
        lost from a bundle of k slows all of the leaf to (k-1)/k: u - S must be left; where k = 1 the spine drops out
        and u - 1 is left. Several ECMP link losses are counted on the safe side: each takes a spine and a link of
        every bundle. The core level is alike, with c and e.
        """
        for number, kind in enumerate((lost.kind, lost.count) for lost in self.options[0].lost):
            needs = [option.lost[number] for option in self.options]
            leaf_need = self._chosen([need.leaf_links for need in needs])
            pod_need = self._chosen([need.pod_links for need in needs])
            if kind[0] == "switch":
                self._lose_switches(kind[1], leaf_need, pod_need)
            else:
                self._lose_links(kind[1], leaf_need, pod_need, number)

    def _lose_switches(self, count: int, leaf_need: Linear, pod_need: Linear) -> None:
        self.model.add(self.uplinks - count * self.bundle >= leaf_need)
        if self.hardware.core is None:
            return
        self.model.add(self.pod_links - count * self.spine_uplinks >= pod_need)
        if not self.rules.ecmp:
            self.model.add(self.pod_links - count * self.pod_share >= pod_need)
            return
        survives = self.model.new_bool_var(f"group_survives_{count}")
        self.model.add(self.core_group_cores > count).only_enforce_if(survives)
        self.model.add(self.core_group_cores <= count).only_enforce_if(~survives)
        lost = self._product(self.spines, self.core_bundle, 1 << 24, f"links_slowed_{count}")
        self.model.add(self.pod_links - count * lost >= pod_need).only_enforce_if(survives)
        dead = self._product(self.core_positions, self.spine_uplinks, 1 << 24, f"links_dead_{count}")
        idle = self._product(self.core_positions, self.bundle, 1 << 24, f"uplinks_idle_{count}")
        self.model.add(self.pod_links - count * dead >= pod_need).only_enforce_if(~survives)
        self.model.add(self.uplinks - count * idle >= leaf_need).only_enforce_if(~survives)

    def _lose_links(self, count: int, leaf_need: Linear, pod_need: Linear, number: int) -> None:
        if not self.rules.ecmp:
            self.model.add(self.uplinks - count >= leaf_need)
            if self.hardware.core is not None:
                self.model.add(self.pod_links - count >= pod_need)
            return
        levels = [(self.bundle, self.spines, self.uplinks, leaf_need)]
        if self.hardware.core is not None:
            width = self._product(self.spines, self.core_group_cores, 1 << 24, f"core_links_{number}")
            levels.append((self.core_bundle, width, self.pod_links, pod_need))
        for level, (bundle, peers, links, need) in enumerate(levels):
            single = self.model.new_bool_var(f"single_{number}_{level}")
            self.model.add(bundle == 1).only_enforce_if(single)
            self.model.add(bundle >= 2).only_enforce_if(~single)
            self.model.add(links - count >= need).only_enforce_if(single)
            spared = 0 if count == 1 else count
            self.model.add(links - count * peers - spared * bundle >= need).only_enforce_if(~single)

    def add_cost(self) -> None:
        """Cost in cents: the option's part, and for each of the equal fabrics its spines, cores and cabling.

        The option's part are leaves and host links. Cabling is, for each class of links, the pieces at the cages of
        both ends and on each link.
        """
        hardware = self.hardware
        lower, upper, link = hardware.leaf_spine_cents
        most_leaves = max(option.leaves for option in self.options)
        leaf_cages = self.leaf_links
        if self.uplink_cages is not self.uplinks:
            leaf_cages = self._product(self.leaves, self.uplink_cages, most_leaves * self.most_uplinks, "leaf_cages")
        spines = self.spines if hardware.core is None else self.all_spines
        times = self.rules.fabrics
        self.leaf_spine_tally = leaf_cages, self.spine_down_cages, self.leaf_links
        self.spine_count = spines
        terms: list[tuple[Var, int]] = [
            *zip(self.leaf_spine_tally, (lower, upper, link), strict=True),
            (spines, hardware.spine_cents),
        ]
        if hardware.core is not None:
            lower, upper, link = hardware.spine_core_cents
            most = self.most_spines * self.most_spine_uplinks
            links = self._product(self.all_spines, self.spine_uplinks, most, "spine_core_links")
            cages = links
            if self.spine_uplink_cages is not self.spine_uplinks:
                cages = self._product(self.all_spines, self.spine_uplink_cages, most, "spine_core_cages")
            self.spine_core_tally = cages, self.core_cages, links
            terms += [
                *zip(self.spine_core_tally, (lower, upper, link), strict=True),
                (self.cores, hardware.core_cents),
            ]
        base = [option.base_cents for option in self.options]
        self.cost = cp_model.LinearExpr.weighted_sum(
            [*self.take, *(variable for variable, _ in terms)], [*base, *(times * cents for _, cents in terms)]
        )
        full = self._var(MOST_CENTS, "cost")
        self.model.add(full == self.cost)
        self.total = self._charged(full)
        # Not needed for correctness: what each option costs at least, so that the search starts near the truth.
        self.model.add(self.total >= self._chosen([option.bound_cents for option in self.options]))
        self.model.minimize(self.total)

    def _charged(self, full: Var) -> Var:
        """The objective, given the full price of everything."""
        return full

    def solve(
        self,
        below_cents: int | None,
        time_limit_s: float,
        threads: int,
        seed: int,
        should_stop: ShouldStop | None = None,
    ) -> Answer:
        """The cheapest solution that costs less than `below_cents`, with the solver's own status and bound.

        `should_stop` is asked from another thread while the solver runs; the answer is then what was found until there.
        """
        if below_cents is not None:
            self.model.add(self.total < below_cents)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = time_limit_s
        solver.parameters.num_workers = threads
        solver.parameters.random_seed = seed
        solver.parameters.catch_sigint_signal = False
        with watched(solver, should_stop):
            status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return Answer("infeasible", None, None)
        if status == cp_model.MODEL_INVALID:
            raise ValueError(f"invalid program: {self.model.validate()}")
        bound = round(solver.best_objective_bound)
        if status == cp_model.UNKNOWN:
            return Answer("unknown", None, bound)
        option = self.options[next(number for number, take in enumerate(self.take) if solver.boolean_value(take))]
        uplinks, spines = solver.value(self.uplinks), solver.value(self.spines)
        bundle = uplinks // spines if uplinks % spines == 0 else None
        name = "optimal" if status == cp_model.OPTIMAL else "feasible"
        answer = Answer(name, round(solver.objective_value), bound, option, spines, bundle, uplinks)
        if self.hardware.core is None:
            return answer
        return replace(
            answer,
            spine_uplinks=solver.value(self.spine_uplinks),
            core_bundle=solver.value(self.core_bundle),
            core_positions=solver.value(self.core_positions),
        )
