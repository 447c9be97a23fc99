"""The choice side by side: the templates, the optimum, the optimum with uneven bundles; and which of them are Pareto.

Two aims pull apart: cost, and how much of their uplinks the worst pair of leaves shares. A network is Pareto-optimal
among those that meet the requirements when no other is at least as good in both and better in one.
"""

import time
from dataclasses import dataclass, replace

from designer.comparison import ComparisonRow, TemplateDesign
from designer.errors import InfeasibleError, NoDesignError
from designer.fabric.build import build_clos
from designer.fabric.pairs import worst_leaf_pair
from designer.fabric.shape import ClosShape
from designer.instance.instance import Instance
from designer.result import Design
from designer.search import Options, design, templates


@dataclass(frozen=True)
class Alternative:
    """One network of the list; `worst_leaf_pair` is None where its links were not drawn."""

    row: ComparisonRow
    worst_leaf_pair: float | None
    pareto: bool

    def to_document(self) -> dict[str, object]:
        """The alternative as plain data, as a row of a design file's `comparison` with two more fields."""
        return {**self.row.to_document(), "worst_leaf_pair": self.worst_leaf_pair, "pareto": self.pareto}


def alternatives(instance: Instance, options: Options) -> tuple[Design, list[Alternative]]:
    """The optimum of the instance, and all networks in the order of their cost; the time limit is for all of it.

    Raises:
        InfeasibleError, NoDesignError: as for `design`.
    """
    started = time.monotonic()
    optimum = design(instance, options)
    rows = [(row, _worst_pair(item)) for row, item in _paired(optimum, templates(instance))]
    rows.append((_row("optimum", optimum, optimum, "the cheapest of those searched"), optimum.worst_leaf_pair))
    left_s = max(0.0, options.time_limit_s - (time.monotonic() - started))
    uneven = _uneven(instance, replace(options, time_limit_s=left_s))
    if uneven is not None and uneven.cost_cents != optimum.cost_cents:
        rows.append((_row("optimum-uneven", uneven, optimum, _uneven_words(uneven, optimum)), uneven.worst_leaf_pair))
    rows.sort(key=lambda pair: pair[0].cost_cents)
    return optimum, [Alternative(row, worst, _is_pareto(row, worst, rows)) for row, worst in rows]


def _paired(optimum: Design, known: list[TemplateDesign]) -> list[tuple[ComparisonRow, TemplateDesign]]:
    by_name = {item.name: item for item in known}
    return [(row, by_name[row.template]) for row in optimum.comparison]


def _worst_pair(item: TemplateDesign) -> float | None:
    shape = item.shape
    if shape is None:
        return None
    if isinstance(shape, ClosShape) and shape.spines is not None and shape.spines.bundle is None:
        return worst_leaf_pair(build_clos(shape))
    return 1.0  # equal bundles, a single switch, or a complete bipartite graph: any two leaves share all


def _row(name: str, found: Design, optimum: Design, why: str) -> ComparisonRow:
    saving = 1 - optimum.cost_cents / found.cost_cents if found.cost_cents else 0.0
    return ComparisonRow(name, found.shape.leaf.switch.key, found.cost_cents, found.counts, True, saving, why)


def _uneven(instance: Instance, options: Options) -> Design | None:
    """The optimum when the links of a bundle may differ by one; None where that is the instance's own rule."""
    if not instance.requirements.symmetric_uplinks or options.should_stop():
        return None
    loose = instance.requirements.model_copy(update={"symmetric_uplinks": False})
    try:
        return design(replace(instance, requirements=loose), options)
    except (InfeasibleError, NoDesignError):  # a limit was hit
        return None


def _uneven_words(uneven: Design, optimum: Design) -> str:
    return (
        f"bundles may differ by one link: {uneven.counts['spine']} spines in place of {optimum.counts['spine']}, "
        f"two leaves share at least {100 * uneven.worst_leaf_pair:.2f} % of their uplinks"
    )


def _is_pareto(row: ComparisonRow, worst: float | None, rows: list[tuple[ComparisonRow, float | None]]) -> bool:
    if not row.meets or worst is None:
        return False
    return not any(
        other.meets
        and pair is not None
        and other.cost_cents <= row.cost_cents
        and pair >= worst
        and (other.cost_cents < row.cost_cents or pair > worst)
        for other, pair in rows
    )
