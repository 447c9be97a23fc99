"""How the tests run the command line: in this process for speed, in one of its own for streams and signals."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from designer.cli import main

ROOT = Path(__file__).parents[2]
RUN = "from designer.cli import main; main()"


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def small_document(**changes: Any) -> dict[str, Any]:
    """A job on 64 GPUs that is designed in a moment."""
    document: dict[str, Any] = {
        "name": "small",
        "cluster": {"gpus": 64, "gpu": "h100-sxm", "nic": "cx7-400"},
        "workload": [{"model": "gpt-22b", "parallelism": {"tp": 8, "dp": 8}, "global_batch": 64}],
        "search": {"switches": ["qm9700"]},
    }
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(document.get(key), dict) else value
    return document


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes an instance like `small_document` with the given changes."""

    def write_instance(**changes: Any) -> Path:
        path = tmp_path / "instance.yaml"
        path.write_text(yaml.safe_dump(small_document(**changes)))
        return path

    return write_instance


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process."""
    monkeypatch.delenv("DESIGNER_TRACEBACK", raising=False)

    def run_main(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        code = end.value.code
        assert "Traceback" not in streams.out + streams.err
        return Ran(code if isinstance(code, int) else 0, streams.out, streams.err)

    return run_main


def environment(**more: str) -> dict[str, str]:
    """A clean environment for a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def start(
    *arguments: object, prelude: str = "", env: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own; `prelude` is Python that runs before it."""
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **streams}
    command = [sys.executable, "-c", f"{prelude}\n{RUN}", *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, env=environment(**(env or {})), **options)


def spawn(*arguments: object, prelude: str = "", env: Mapping[str, str] | None = None) -> Ran:
    """Runs the command line in a process of its own to its end."""
    process = start(*arguments, prelude=prelude, env=env)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err
    return Ran(process.returncode, out, err)
