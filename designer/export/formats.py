"""The formats by name, and `export_design`, which writes a design in one of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from designer.certify.read_design import DesignFile
from designer.errors import ExportError, Problem
from designer.export.astra_sim import write_astra_sim
from designer.export.bom import write_bom_csv, write_bom_xlsx
from designer.export.graph import write_graphml, write_node_link
from designer.export.htsim import write_htsim
from designer.export.infiniband import write_ibsim, write_topo
from designer.export.model_files import write_lp, write_mps
from designer.export.names import Names
from designer.export.netbox import write_netbox
from designer.export.ns3 import write_ns3
from designer.export.plan import Plan, make_plan
from designer.export.ptm import write_ptm
from designer.export.slurm import write_slurm_block, write_slurm_tree, write_slurm_yaml
from designer.export.wiring import write_wiring_csv, write_wiring_xlsx
from designer.files import check_writable

Write = Callable[[Plan, Path], tuple[str, ...] | None]


@dataclass(frozen=True)
class Format:
    """A format: what it is, and what writes it and returns notes on what the file cannot say."""

    what: str
    write: Write


FORMATS = {
    "node-link": Format("node-link JSON of networkx", write_node_link),
    "graphml": Format("GraphML", write_graphml),
    "wiring-csv": Format("wiring plan as CSV", write_wiring_csv),
    "wiring-xlsx": Format("wiring plan as workbook", write_wiring_xlsx),
    "bom-csv": Format("bill of materials as CSV", write_bom_csv),
    "bom-xlsx": Format("bill of materials as workbook", write_bom_xlsx),
    "netbox": Format("folder of CSV and YAML files for NetBox", write_netbox),
    "slurm-tree": Format("topology.conf of Slurm's topology/tree", write_slurm_tree),
    "slurm-block": Format("topology.conf of Slurm's topology/block", write_slurm_block),
    "slurm-yaml": Format("topology.yaml of Slurm", write_slurm_yaml),
    "ptm": Format("topology.dot of PTM and NVIDIA's cable validation", write_ptm),
    "ib-topo": Format(".topo file of InfiniBand tools", write_topo),
    "ibsim": Format("net file of ibsim, with a list of root switches", write_ibsim),
    "ns3": Format("topology of SimAI's ns-3", write_ns3),
    "astra-sim": Format("network of ASTRA-sim's analytical backend", write_astra_sim),
    "htsim": Format("topology of htsim", write_htsim),
    "lp": Format("link-placement program in LP format", write_lp),
    "mps": Format("link-placement program in MPS format", write_mps),
}


def export_design(design: DesignFile, name: str, path: Path | str, names: Names | None = None) -> tuple[str, ...]:
    """Writes `design` in the format `name`, one of `FORMATS`; returns what a user of the file has to know.

    Raises:
        ExportError: no such format, or it cannot express this design, or the devices have no names that differ.
        OutputError: the path cannot be written.
    """
    if name not in FORMATS:
        raise ExportError([Problem(design.path, None, "format", repr(name), f"one of: {', '.join(FORMATS)}")])
    target = Path(path)
    if name != "netbox":
        check_writable(target)
    return FORMATS[name].write(make_plan(design, names), target) or ()
