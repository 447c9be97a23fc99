"""The columns of a fabric from an untrusted document: every number a whole one, in range, none lost on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from designer.errors import Problem
from designer.fabric.fabric import GPU, KINDS, LEAF, MANAGEMENT, Column, Fabric, Links, MediumUse, Nodes, OwnedSwitch

MAX_ROWS = 1 << 24
MAX_CAGES = 1 << 12
MAX_GBPS = 100_000
MAX_PLANES = 64
MAX_TABLE = 1 << 12
MAX_GPUS = 1 << 20
MAX_LENGTH_M = 1e6
MAX_NAME = 200

Document = Mapping[str, Any]


class ColumnReader:
    """Reads the fabric at the field `at` of a design file and gathers what is wrong with it."""

    def __init__(self, path: str, at: str = "fabric") -> None:
        self.path, self.at = path, at
        self.problems: list[Problem] = []

    def refuse(self, field: str, found: object, allowed: str) -> None:
        """Notes a problem."""
        self.problems.append(Problem(self.path, None, f"{self.at}.{field}".rstrip("."), str(found)[:200], allowed))

    def fabric(self, document: Document) -> Fabric | None:
        """The fabric; None when there were problems. Its parts must be mappings and lists already."""
        gpus = self._whole(document, "gpus", 1, MAX_GPUS)
        per_cage = self._whole(document, "gpus_per_cage", 1, MAX_CAGES)
        models = cast("list[str]", document["models"])
        media = self._media(cast("list[Any]", document["media"]))
        if not 1 <= len(models) <= MAX_TABLE:
            self.refuse("models", f"{len(models)} models", f"1 to {MAX_TABLE}")
        lengths = {part: self._length(cast("Document", document[part]), part) for part in ("nodes", "links")}
        if self.problems or media is None:
            return None
        nodes = lengths["nodes"]
        node_limits = {
            "kind": (0, len(KINDS) - 1),
            "rail": (-1, gpus - 1),
            "plane": (-1, MAX_PLANES - 1),
            "pod": (-1, nodes - 1),
            "fabric": (-1, nodes - 1),
            "model": (-1, len(models) - 1),
        }
        port = (0, MAX_CAGES - 1)
        link_limits = {
            "a": (0, nodes - 1),
            "b": (0, nodes - 1),
            "a_cage": port,
            "a_lane": port,
            "b_cage": port,
            "b_lane": port,
            "gbps": (1, MAX_GBPS),
            "medium": (0, len(media) - 1),
        }
        node_columns = self._columns(cast("Document", document["nodes"]), "nodes", node_limits)
        link_columns = self._columns(cast("Document", document["links"]), "links", link_limits)
        if self.problems:
            return None
        result = Fabric(gpus, per_cage, tuple(models), media, Nodes(**node_columns), Links(**link_columns))
        self._order(result)
        owned = self._owned(cast("list[Any]", document.get("owned", [])), result)
        return None if self.problems else replace(result, owned=owned)

    def _whole(self, document: Document, name: str, least: int, most: int) -> int:
        value = document[name]
        if type(value) is not int or not least <= value <= most:
            self.refuse(name, repr(value), f"a whole number from {least} to {most}")
            return least
        return value

    def _media(self, entries: Sequence[Any]) -> tuple[MediumUse, ...] | None:
        before = len(self.problems)
        names = ("per_lower_cage", "per_upper_cage", "per_link", "length_m")
        result: list[MediumUse] = []
        if not 1 <= len(entries) <= MAX_TABLE:
            self.refuse("media", f"{len(entries)} media", f"1 to {MAX_TABLE}")
        for row, entry in enumerate(entries[:MAX_TABLE]):
            at = f"media[{row}]"
            fields = cast("Document", entry if isinstance(entry, Mapping) else {})
            if set(fields) != set(names):
                self.refuse(at, "another entry", f"a mapping of {', '.join(names)}")
                continue
            for name in names[:3]:
                if not (fields[name] is None or (isinstance(fields[name], str) and fields[name])):
                    self.refuse(f"{at}.{name}", repr(fields[name]), "a catalog key or null")
            length = fields["length_m"]
            if type(length) not in (int, float) or not 0 <= length <= MAX_LENGTH_M:
                self.refuse(f"{at}.length_m", repr(length), f"metres from 0 to {MAX_LENGTH_M:g}")
            result.append(MediumUse(*(fields[name] for name in names)))
        return tuple(result) if len(self.problems) == before else None

    def _length(self, columns: Document, part: str) -> int:
        """The common length of the columns of a part, found before any is unpacked."""
        lengths: dict[str, int] = {}
        for name, column in columns.items():
            if isinstance(column, Mapping):
                runs = cast("Document", column).get("runs")
                if not isinstance(runs, list) or not all(_is_run(run) for run in cast("list[object]", runs)):
                    self.refuse(f"{part}.{name}", "runs that are no pairs", "pairs [value, length] of whole numbers")
                    continue
                lengths[name] = sum(cast("int", run[1]) for run in cast("list[list[Any]]", runs))
            elif isinstance(column, list):
                lengths[name] = len(cast("list[object]", column))
            else:
                self.refuse(f"{part}.{name}", type(column).__name__, "a list of whole numbers, or runs of them")
        if not lengths:
            return 0
        usual = max(set(lengths.values()), key=list(lengths.values()).count)
        for name, length in lengths.items():
            if length != usual:
                self.refuse(f"{part}.{name}", f"a column of {length} entries", f"{usual}, as the other columns have")
        if not 1 <= usual <= MAX_ROWS:
            self.refuse(part, f"{usual} rows", f"1 to {MAX_ROWS}")
        return usual

    def _columns(self, columns: Document, part: str, limits: Mapping[str, tuple[int, int]]) -> dict[str, Column]:
        result: dict[str, Column] = {}
        for name, (least, most) in limits.items():
            column = columns[name]
            values = [run[0] for run in column["runs"]] if isinstance(column, Mapping) else column  # pyright: ignore[reportUnknownVariableType]
            bad = _first_bad(cast("list[Any]", values), least, most)
            if bad is not None:
                where = f"{part}.{name}.runs[{bad}]" if isinstance(column, Mapping) else f"{part}.{name}[{bad}]"
                allowed = f"a whole number from {least} to {most}"
                self.refuse(where, repr(values[bad]), allowed)  # pyright: ignore[reportUnknownArgumentType]
                continue
            packed = np.array(values, dtype=np.int64)
            if isinstance(column, Mapping):
                packed = np.repeat(packed, np.array([run[1] for run in column["runs"]], dtype=np.int64))  # pyright: ignore[reportUnknownVariableType]
            result[name] = packed
        return result

    def _owned(self, entries: Sequence[Any], fabric: Fabric) -> tuple[OwnedSwitch, ...]:
        """Switches that were there before, each once, and each name once."""
        result: list[OwnedSwitch] = []
        switches = set(np.flatnonzero(fabric.nodes.kind >= LEAF).tolist())
        names: set[str] = set()
        for row, entry in enumerate(entries):
            fields = cast("Document", entry)
            node, name, free = fields["node"], fields["name"], fields["free_ports"]
            if type(node) is not int or node not in switches:
                self.refuse(f"owned[{row}].node", repr(node), "the number of a switch, each once")
            if type(name) is not str or not 0 < len(name) <= MAX_NAME or name in names:
                self.refuse(f"owned[{row}].name", repr(name), f"a name of 1 to {MAX_NAME} characters, each once")
            if type(free) is not int or not 1 <= free <= MAX_CAGES:
                self.refuse(f"owned[{row}].free_ports", repr(free), f"a whole number from 1 to {MAX_CAGES}")
            if not self.problems:
                switches.remove(node)
                names.add(name)
                result.append(OwnedSwitch(node, name, free))
        return tuple(result)

    def _order(self, fabric: Fabric) -> None:
        kind, model = fabric.nodes.kind, fabric.nodes.model
        gpus = int((kind == GPU).sum())
        if gpus != fabric.gpus or (kind[: fabric.gpus] != GPU).any():
            self.refuse("nodes.kind", f"{gpus} GPUs", f"the {fabric.gpus} GPUs first, and no other")
        for name, chosen, wanted in (
            ("a switch", kind >= LEAF, "a model"),
            ("a GPU or management port", kind <= MANAGEMENT, "no model (-1)"),
        ):
            odd = np.flatnonzero(chosen & ((model >= 0) != (wanted == "a model")))
            if len(odd):
                self.refuse(f"nodes.model[{odd[0]}]", f"{model[odd[0]]} for {name}", wanted)
        lost = np.flatnonzero((kind >= LEAF) & (fabric.nodes.fabric < 0))
        if len(lost):
            self.refuse(f"nodes.fabric[{lost[0]}]", "-1 for a switch", "the number of its fabric")


def _is_run(run: object) -> bool:
    return isinstance(run, list) and len(run) == 2 and all(type(part) is int for part in run) and run[1] >= 0  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _first_bad(values: list[Any], least: int, most: int) -> int | None:
    """Position of the first entry that is no whole number in range; booleans are none."""
    if set(map(type, values)) <= {int} and (not values or (min(values) >= least and max(values) <= most)):
        return None
    return next(at for at, value in enumerate(values) if type(value) is not int or not least <= value <= most)
