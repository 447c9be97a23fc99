"""The README: its commands print what it shows, its Python runs, its table names every field of an instance.

python tests/test_readme.py --update     writes the outputs of commands and Python into the README
"""

import doctest
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from designer import load_instance
from designer.instance import schema
from designer.study.study_file import load_study

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\b\d+\.\d s\b")


def _normal(text: str) -> str:
    """The text with times, which differ from run to run, made equal."""
    return SECONDS.sub("0.2 s", text)


def _folder(path: Path) -> Path:
    """A folder for commands to run in: the instances, and `designer` as `bin/designer`."""
    (path / "bin").mkdir()
    program = path / "bin" / "designer"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from designer.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    (path / "instances").symlink_to(ROOT / "instances")
    return path


def _environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    return kept | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "NO_COLOR": "1",
    }


def _console(block: str, folder: Path) -> str:
    """The block with the standard output of each of its commands as it is now."""
    lines: list[str] = []
    for command in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=_environment(folder),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        lines += [f"$ {command}", *_normal(done.stdout).splitlines()]
    return "\n".join(lines) + "\n"


def _python(block: str, folder: Path) -> str:
    """The block with the answers of its statements as they are now."""
    program = (
        "import sys\n"
        "for line in sys.stdin.read().splitlines():\n"
        "    print('>>>', line, flush=True)\n"
        "    exec(compile(line + '\\n', '<README>', 'single'))\n"
    )
    statements = "\n".join(example.source.rstrip() for example in doctest.DocTestParser().get_examples(block))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=_environment(folder),
        input=statements,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _fresh(language: str, block: str, folder: Path) -> str:
    return _console(block, folder) if language == "console" else _python(block, folder)


BLOCKS = [match.groups() for match in BLOCK.finditer(README.read_text(encoding="utf-8"))]


def test_the_readme_has_commands_and_python() -> None:
    assert {language for language, _ in BLOCKS} == {"console", "python"}


@pytest.mark.parametrize(("language", "block"), BLOCKS, ids=[block.split("\n")[0] for _, block in BLOCKS])
def test_what_the_readme_shows_is_what_happens(language: str, block: str, tmp_path: Path) -> None:
    assert _fresh(language, block, _folder(tmp_path)) == _normal(block)


def test_a_changed_output_is_noticed(tmp_path: Path) -> None:
    block = "$ designer schema instance | head -n 1\nsomething else\n"
    assert _fresh("console", block, _folder(tmp_path)) != block


def test_the_instance_in_the_readme_loads(tmp_path: Path) -> None:
    path = tmp_path / "my-cluster.yaml"
    path.write_text(README.read_text(encoding="utf-8").split("```yaml\nname:")[1].split("```")[0].join(["name:", ""]))
    assert load_instance(path).cluster.gpus == 1024


def test_the_study_in_the_readme_loads(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    path.write_text(README.read_text(encoding="utf-8").split("```yaml\nbase:")[1].split("```")[0].join(["base:", ""]))
    assert len(load_study(path).plan.points) == 6


def test_the_table_names_every_field_of_an_instance() -> None:
    table = README.read_text(encoding="utf-8").split("| field | default | meaning |")[1].split("\n\n")[0]
    named = {part for code in re.findall(r"`([^`]+)`", table) for part in re.split(r"[.\[\]]+", code)}
    sections = [
        schema.InstanceFile,
        schema.ClusterSection,
        schema.ServersSection,
        schema.ExistingSection,
        schema.JobSection,
        schema.ParallelismSection,
        schema.DemandSection,
        schema.RequirementsSection,
        schema.SurviveSection,
        schema.SearchSection,
        schema.ExistingNetworkSection,
        schema.LeafSection,
        schema.CablingSection,
        schema.LayoutSection,
        schema.EnergySection,
        schema.TrainingSection,
    ]
    fields = {field for section in sections for field in section.model_fields}
    assert fields - named == {"failure"}, "of failure the values are named"


def _update() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = _folder(Path(name))

        def fresh(match: re.Match[str]) -> str:
            return f"```{match[1]}\n{_fresh(match[1], match[2], folder)}```"

        README.write_text(BLOCK.sub(fresh, README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/test_readme.py --update")
    _update()
