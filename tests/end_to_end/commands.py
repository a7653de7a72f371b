"""What the end-to-end tests share beside the node itself: commands, node files, servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from crewlet.broker import server_files
from tests.end_to_end.harness import Company, until

CREWLET = (sys.executable, "-m", "crewlet")


def crewlet(
    data: Path, *args: str, env: Mapping[str, str] | None = None, within_s: float = 20.0
) -> subprocess.CompletedProcess[str]:
    """Run one command against the node of a data folder, as a shell would."""
    return subprocess.run(
        [*CREWLET, *args],
        env={**os.environ, "CREWLET_DATA": str(data), **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=within_s,
        check=False,
    )


def shell(
    data: Path, script: str, env: Mapping[str, str] | None = None, within_s: float = 20.0
) -> subprocess.CompletedProcess[bytes]:
    """Run a bash script in which `crewlet` is ours."""
    function = f'crewlet() {{ "{sys.executable}" -m crewlet "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", function + script],
        env={**os.environ, "CREWLET_DATA": str(data), **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within_s,
        check=False,
    )


def node_file(company: Company, text: str, name: str = "node.yaml") -> tuple[str, str]:
    """The two arguments that make a node read these settings."""
    path = company.folder / name
    path.write_text(text)
    return ("--node", str(path))


def servers_below(data: Path) -> list[psutil.Process]:
    """Brokers that still run in a data folder, whoever their parent is by now."""
    found = []
    for process in psutil.process_iter(["name"]):
        if "nats-server" not in (process.info["name"] or ""):
            continue
        try:
            if Path(process.cwd()).is_relative_to(data.resolve()):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def broker_of(pid: int) -> psutil.Process:
    """The embedded broker of a node."""
    return next(c for c in psutil.Process(pid).children() if "nats-server" in c.name())


@contextmanager
def nats_server(folder: Path, max_payload: int = 9 * 2**20) -> Iterator[str]:
    """A server as an operator runs one: files, JetStream, a free port. Its URL."""
    (folder / server_files.RUN).mkdir(parents=True)
    config = folder / "own.conf"
    config.write_text(
        'listen: "127.0.0.1:-1"\n'
        f'ports_file_dir: "{server_files.RUN}"\n'
        f"max_payload: {max_payload}\nmax_pending: {max(2**26, max_payload)}\n"
        'jetstream { store_dir: "store" }\n'
    )
    with subprocess.Popen(
        [str(server_files.find_program()), "-c", config.name],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            port = until(lambda: server_files.read_port(folder, child.pid), why="the server runs")
            yield f"nats://127.0.0.1:{port}"
        finally:
            child.kill()
