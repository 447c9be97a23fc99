"""Suites: folders of instance files, with what is known of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from designer.benchmark.records import Known, read_known
from designer.errors import InstanceError, Problem

ROOT = Path("instances")
NO_INSTANCE = ("catalog.yaml", "study.yaml", "base.yaml")


@dataclass(frozen=True)
class Suite:
    """A folder of instances; `known` holds what is known of them, by name."""

    name: str
    folder: Path
    instances: tuple[Path, ...]
    known: Mapping[str, Known]


def instance_files(folder: Path) -> list[Path]:
    """The instances of a folder; catalogs and studies among the files are none."""
    return sorted(path for path in folder.glob("*.yaml") if path.name not in NO_INSTANCE)


def find_suites(names: Sequence[str] = (), root: Path = ROOT) -> list[Suite]:
    """The suites of these names: folders below `root`, or paths of folders; without names all below `root`.

    Raises:
        InstanceError: a folder is not there or has no instances, or its records cannot be read.
    """
    if not names:
        if not root.is_dir():
            allowed = "a working folder with the suites in it, or paths of suites"
            raise InstanceError([Problem(str(root), None, "", "no such folder", allowed)])
        folders = sorted(path for path in root.iterdir() if path.is_dir() and instance_files(path))
    else:
        folders = [_folder(name, root) for name in dict.fromkeys(names)]
    problems: list[Problem] = []
    suites: list[Suite] = []
    for folder in folders:
        files = instance_files(folder) if folder.is_dir() else []
        if files:
            suites.append(Suite(folder.resolve().name, folder, tuple(files), read_known(folder)))
            continue
        there = ", ".join(sorted(path.name for path in root.glob("*/") if instance_files(path)))
        found = "no instances in it" if folder.is_dir() else "no such suite"
        allowed = "a folder with instances (*.yaml)" + (f"; in {root} are {there}" if there else "")
        problems.append(Problem(str(folder), None, "", found, allowed))
    if problems:
        raise InstanceError(problems)
    return suites


def _folder(name: str, root: Path) -> Path:
    below = root / name
    return below if below.is_dir() else Path(name)
