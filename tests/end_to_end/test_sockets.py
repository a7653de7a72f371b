"""What a node leaves open on the machine: sockets, files, command lines."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.commands import broker_of
from tests.end_to_end.harness import Company, until

TOKEN = re.compile(rb"(?<!sha256:)[0-9a-f]{64}")
"""What a boot's credentials look like, and nothing else of ours does: nats-server logs a digest
of its configuration."""


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _listens(process: psutil.Process) -> list[tuple[str, int]]:
    found = process.net_connections("inet")
    return [(c.laddr.ip, c.laddr.port) for c in found if c.status == psutil.CONN_LISTEN]


def _unix_listeners(process: psutil.Process) -> set[str]:
    """Unix sockets with a name that this process holds: the nameless are pairs of its own."""
    return {str(c.laddr) for c in process.net_connections("unix") if c.laddr}


@pytest.mark.certifies(5)
def test_a_node_listens_at_its_edge_and_its_socket_and_nowhere_else(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        mine = psutil.Process(node.process.pid)
        child = broker_of(mine.pid)
        port = int(node.url.rpartition(":")[2])
        assert _listens(mine) == [("127.0.0.1", port)]
        assert _unix_listeners(mine) == {str(company.data / "crewlet.sock")}
        ((address, broker_port),) = _listens(child)
        assert address == "127.0.0.1" and broker_port not in (4222, 8222, port)
        assert not _unix_listeners(child)
        udp = [c for p in (mine, child) for c in p.net_connections("udp")]
        assert not udp
        assert mine.children(recursive=True) == [child]
        node.send("dev", "sleep 0.2")
        until(lambda: company.lines("start"), why="a turn runs")
        assert _listens(mine) == [("127.0.0.1", port)], "a turn opens nothing"


def test_the_brokers_credentials_are_in_nobodys_sight(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        child = broker_of(node.process.pid)
        environment = Path(f"/proc/{child.pid}/environ").read_bytes()
        words = [*child.cmdline(), *environment.decode().split("\0")]
        assert not [word for word in words if TOKEN.search(word.encode())]
        names = {word.partition("=")[0] for word in words if "=" in word}
        # LC_CTYPE is what the launching Python sets for itself.
        assert names <= {"TMPDIR", "LC_CTYPE"}, "nothing of the node's environment"
        assert not [word for word in words if "password" in word.lower()]
        folder = Path(child.cwd())
        assert folder.is_relative_to(company.data)
        assert not (folder / "run" / "nats.conf").exists(), "it has been read, and is gone"
        for path in company.data.rglob("*"):
            assert not path.is_file() or not TOKEN.search(path.read_bytes()), path
    assert not TOKEN.search(company.log.read_bytes())


def test_files_are_for_the_user_alone(tmp_path: Path) -> None:
    company = Company(tmp_path)
    before = os.umask(0)
    try:
        with company.running() as node:
            node.send("dev", "leave something on the disk")
            node.idle()
            assert _mode(company.data) == 0o700
            assert _mode(company.data / "node.lock") == 0o600
            assert _mode(company.data / "crewlet.sock") == 0o600
            folder = Path(broker_of(node.process.pid).cwd())
            assert _mode(folder / "run") == 0o700
            assert _mode(folder) & 0o077 == 0
    finally:
        os.umask(before)


def test_the_configuration_is_private_while_it_is_there(tmp_path: Path) -> None:
    """It lives for some milliseconds: written here by the same words, and looked at."""
    from crewlet.broker import server_files
    from crewlet.broker.server_config import Plan, configuration

    before = os.umask(0)
    try:
        folder = tmp_path / "broker"
        server_files.prepare_folder(folder)
        server_files.write_config(folder, configuration(Plan("u", "p"), -1))
    finally:
        os.umask(before)
    assert _mode(folder) == 0o700 and _mode(folder / "run") == 0o700
    assert _mode(folder / server_files.CONFIG) == 0o600
