"""A simulated InfiniBand network: ibsim with a net file, and what OpenSM and ibnetdiscover say of it."""

import contextlib
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARIES = tuple(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
needs_opensm = pytest.mark.skipif(
    not LIBRARIES or not Path("/proc/net/unix").exists() or not all(shutil.which(name) for name in ("opensm", "ibsim")),
    reason="OpenSM and ibsim (Debian packages opensm, ibsim-utils) are not installed",
)


@dataclass(frozen=True)
class Simulation:
    """A network that ibsim plays; `folder` takes what OpenSM writes."""

    folder: Path
    environment: dict[str, str]

    def routing(self, engine: str, *options: str) -> str:
        """The routing engine whose tables OpenSM configures in the end, when `engine` is asked for."""
        log = self.folder / "osm.log"
        log.unlink(missing_ok=True)
        self.run("opensm", "-R", engine, "-o", "-D", "3", "-f", str(log), *options)
        lines = [line for line in log.read_text().splitlines() if "tables configured on all switches" in line]
        return lines[-1].split(" tables configured")[0].split()[-1]

    def run(self, *command: str) -> str:
        """Standard output of a program on the simulated network."""
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextlib.contextmanager
def simulated(net: Path) -> Generator[Simulation]:
    """The network of a net file."""
    folder = net.parent / f"simulation-{secrets.token_hex(4)}"
    folder.mkdir()
    name = f"test-{secrets.token_hex(8)}"
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    kept |= {"IBSIM_SOCKNAME": name, "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
    with (folder / "ibsim.log").open("w") as log:
        process = subprocess.Popen(
            ["ibsim", "-n", "-N", "8192", "-S", "1024", "-P", "131072", "-s", str(net)],
            env=kept,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(process, name)
            yield Simulation(folder, kept | {"LD_PRELOAD": str(LIBRARIES[0])})
        finally:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", name: str) -> None:
    """Waits until the simulator listens: a program that comes before would wait for ever."""
    for _ in range(400):
        assert process.poll() is None, "ibsim ended"
        if f"@{name}:ctl" in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace"):
            return
        time.sleep(0.05)
    raise AssertionError("ibsim does not listen")
