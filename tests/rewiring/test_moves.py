"""Which links stay: counted link by link in plain loops, whatever switch is said to be which."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from designer.fabric.fabric import LEAF, MANAGEMENT, Fabric
from designer.rewiring.moves import count_moves, kept_links
from tests.rewiring.beside import drawn, pairs

QUIET = settings(
    derandomize=True, max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def ports_of(fabric: Fabric, name: dict[int, object]) -> set[object]:
    """Every link as a pair of named ports with its speed and what each end takes."""
    found = set()
    links = fabric.links
    for row in range(fabric.n_links):
        use = fabric.media[int(links.medium[row])]
        ends = [
            (name[int(links.a[row])], int(links.a_cage[row]), int(links.a_lane[row]), use.per_lower_cage),
            (name[int(links.b[row])], int(links.b_cage[row]), int(links.b_lane[row]), use.per_upper_cage),
        ]
        found.add((frozenset(ends), use.per_link, use.length_m, int(links.gbps[row])))
    return found


def names_of(fabric: Fabric, switches: dict[int, object]) -> dict[int, object]:
    """GPUs by number, management ports by plane and order, switches as given."""
    names: dict[int, object] = dict(switches)
    seen: dict[int, int] = {}
    for node in range(fabric.n_nodes):
        if node < fabric.gpus:
            names[node] = ("gpu", node)
        elif fabric.nodes.kind[node] == MANAGEMENT:
            plane = int(fabric.nodes.plane[node])
            seen[plane] = seen.get(plane, -1) + 1
            names[node] = ("management", plane, seen[plane])
    return names


@QUIET
@given(pairs(), st.randoms(use_true_random=False))
def test_links_stay_where_ports_cable_and_speed_do(pair, rng):
    """The count is the size of the intersection of the two sets of links."""
    _, *parts = pair
    old, new = drawn(*parts)
    old_switches = np.flatnonzero(old.nodes.kind >= LEAF).tolist()
    switches = np.flatnonzero(new.nodes.kind >= LEAF).tolist()
    rng.shuffle(old_switches)
    same_as = [old_switches[at] if at < len(old_switches) and rng.random() < 0.8 else -1 for at in range(len(switches))]
    there = ports_of(old, names_of(old, {node: ("old", node) for node in old_switches}))
    as_old = {
        node: ("old", other) if other >= 0 else ("new", node) for node, other in zip(switches, same_as, strict=True)
    }
    here = ports_of(new, names_of(new, as_old))
    moves = count_moves(old, new, np.array(same_as))
    assert moves.kept == len(there & here)
    assert moves.plugged == new.n_links - moves.kept
    assert moves.pulled == old.n_links - moves.kept


def test_a_link_with_another_module_or_speed_does_not_stay():
    """Of a network that is there twice one link is recabled, one is slower."""
    from designer import design
    from tests.strategies import COPPER, catalog, instance_of, switch

    instance = instance_of(catalog({"s": switch(8, 100)}, COPPER), {"gpus": 12}, search={"families": ["clos"]})
    fabric = design(instance).fabric
    same = np.flatnonzero(fabric.nodes.kind >= LEAF)
    assert count_moves(fabric, fabric, same).plugged == 0
    gbps, medium = fabric.links.gbps.copy(), fabric.links.medium.copy()
    gbps[3] //= 2
    medium[5] = len(fabric.media)
    media = (*fabric.media, replace(fabric.media[int(fabric.links.medium[5])], per_link="other"))
    changed = replace(fabric, media=media, links=replace(fabric.links, gbps=gbps, medium=medium))
    stays, stayed = kept_links(fabric, changed, same)
    assert np.flatnonzero(~stays).tolist() == [3, 5]
    assert np.flatnonzero(~stayed).tolist() == [3, 5]
