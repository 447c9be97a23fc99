"""Cabling for Prescriptive Topology Manager (`/etc/ptm.d/topology.dot`) and NVIDIA's cable validation: links by port.

Source: Cumulus Linux documentation, "Prescriptive Topology Manager - PTM"; roles of switches as the Cable Validation
Tool of NVIDIA UFM has them.
"""

from pathlib import Path

from designer.export.plan import Plan
from designer.fabric.fabric import CORE, LEAF, SPINE
from designer.files import text_written_atomically

CVT_ROLES = {LEAF: "leaf", SPINE: "spine", CORE: "super_spine"}


def write_ptm(plan: Plan, path: Path) -> None:
    """Writes `topology.dot`.

    Raises:
        OutputError: it cannot be written.
    """
    names, ports = [_quoted(name) for name in plan.devices.name], [_quoted(port) for port in plan.port_names]
    with text_written_atomically(path) as file:
        file.write("graph G {\n")
        for name, role in zip(names, plan.devices.role.tolist(), strict=True):
            if role in CVT_ROLES:
                file.write(f'    {name} [label={name} role="{CVT_ROLES[role]}"]\n')
        for a, a_port, b, b_port in plan.rows(plan.a.device, plan.a.port, plan.b.device, plan.b.port):
            file.write(f"    {names[a]}:{ports[a_port]} -- {names[b]}:{ports[b_port]}\n")
        file.write("}\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
