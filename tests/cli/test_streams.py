"""Results on stdout, all else on stderr; colour on terminals only; broken pipes; what `--help` loads."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from designer.cli.console import WIDTH, printable, render, write_out
from tests.cli.conftest import Run, environment, spawn, start

Write = Callable[..., Path]

LOUD_SEARCH = """
import os
import designer.search as search
quiet = search.design
def loud(instance, options):
    os.write(1, b"the solver says something")
    print("and so does Python")
    return quiet(instance, options)
search.design = loud
"""


def test_help_loads_no_heavy_module() -> None:
    heavy = ("numpy", "pydantic", "ortools", "yaml", "rich", "networkx", "highspy", "pulp")
    code = (
        "import sys\nfrom designer.cli import main\ntry:\n    main(['--help'])\n"
        f"except SystemExit:\n    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "design" in done.stdout


@pytest.mark.parametrize(
    "command",
    [[], ["new"], ["design"], ["compare"], ["traffic"], ["bench"], ["catalog"], ["catalog", "show"], ["schema"]],
)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_everywhere(run: Run, command: list[str], option: str) -> None:
    ran = run(*command, option)
    assert ran.code == 0
    assert ran.out.startswith("Usage: designer")
    assert ran.err == ""


def test_version(run: Run) -> None:
    ran = run("--version")
    assert ran.code == 0
    assert ran.out.startswith("designer ")


def test_only_the_document_is_on_stdout_whatever_solvers_print(write: Write) -> None:
    path = write()
    ran = spawn("design", path, "--json", prelude=LOUD_SEARCH)
    assert ran.code == 0
    assert json.loads(ran.out)["name"] == "small"
    assert "the solver says something" in ran.err


def test_progress_goes_to_stderr_without_motion(write: Write) -> None:
    job = {"model": "gpt-22b", "parallelism": {"tp": 8, "pp": 8, "dp": 16}, "global_batch": 512}
    ran = spawn("design", write(cluster={"gpus": 1024}, workload=[job], requirements={"throughput": {"pp": 0.25}}))
    assert ran.code == 0
    assert "best $" in ran.err
    assert "bound $" in ran.err
    assert "best $" not in ran.out
    assert not {"\x1b", "\r"} & set(ran.out + ran.err)


def test_force_color_gives_no_colour_off_a_terminal() -> None:
    ran = spawn("catalog", "list", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert ran.code == 0
    assert "\x1b" not in ran.out


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colour_on_a_terminal_unless_refused(env: dict[str, str], coloured: bool) -> None:
    ours, theirs = os.openpty()
    process = start("catalog", "list", env=env, stdout=theirs)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a pseudo-terminal
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"qm9700" in seen
    assert (b"\x1b[" in seen) == coloured


@pytest.mark.parametrize("arguments", [["catalog", "list"], ["schema"], ["--help"], ["catalog", "list", "--json"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*arguments, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert err == ""


def test_ascii_streams_show_substitutes(write: Write) -> None:
    ran = spawn("design", write(name="größe"), env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert ran.code == 0
    assert "gr\\xf6\\xdfe" in ran.out


def test_names_with_terminal_escapes_are_shown_as_text(run: Run, write: Write) -> None:
    ran = run("design", write(name="\x1b[2Jcleared [bold]"))
    assert ran.code == 0
    assert "\x1b" not in ran.out + ran.err
    assert "\\x1b[2Jcleared [bold]" in ran.out


def test_a_no_break_space_is_not_broken_and_written_as_a_space(capsys: pytest.CaptureFixture[str]) -> None:
    words = printable("x" * (WIDTH - 5) + " −36.4\N{NO-BREAK SPACE}%\ue000")
    write_out(render(words))
    assert capsys.readouterr().out == "x" * (WIDTH - 5) + "\n−36.4 %\\ue000\n"


def test_an_internal_error_is_one_line(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a wheel came off\nand another")

    monkeypatch.setattr("designer.search.design", broken)
    path = write()
    output = path.with_name("design.json")
    ran = run("design", path, "-o", output)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.splitlines()[-1].startswith(
        "internal error: RuntimeError: a wheel came off (set DESIGNER_TRACEBACK=1"
    )
    assert not output.exists()


def test_the_traceback_of_an_internal_error_on_request(write: Write) -> None:
    prelude = "import designer.search\ndesigner.search.design = None\n"
    process = start("design", write(), prelude=prelude, env={"DESIGNER_TRACEBACK": "1"})
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    assert "Traceback" in err
