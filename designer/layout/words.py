"""A floor in words, the same on the command line and on the page."""

import numpy as np

from designer.layout.floor import Floor, Places

WHERE = {
    "end-of-row": "at the ends of rows",
    "middle-of-row": "in the middle of rows",
    "network-row": "in rows of their own",
}


def floor_words(floor: Floor, places: Places, lengths_m: list[float]) -> str:
    """Racks, rows, where switches stand, and the lengths of cables."""
    servers = len(np.unique(floor.rack_of_gpu))
    rows = len(np.unique(floor.row[: floor.first_switch_rack]))
    used = len(np.unique(places.rack))
    shortest, longest = min(lengths_m), max(lengths_m)
    cables = f"cables of {shortest:g} m" if shortest == longest else f"cables of {shortest:g} to {longest:g} m"
    return (
        f"{_count(servers, 'rack')} of servers in {_count(rows, 'row')}, "
        f"{_count(used, 'rack')} of switches {WHERE[floor.layout.switches]}; {cables}"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
