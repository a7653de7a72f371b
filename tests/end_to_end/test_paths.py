"""A data folder may lie anywhere: the control socket is found, and a kill leaves no mess."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.admin import paths
from tests.end_to_end.commands import crewlet, servers_below
from tests.end_to_end.harness import Company, until


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name of its own: pytest's may have ninety bytes already."""
    with tempfile.TemporaryDirectory(prefix="c05-", dir="/tmp") as folder:
        yield Path(folder)


def _folder_of(root: Path, length: int) -> Path:
    """A path below `root` of exactly so many bytes."""
    path = root
    while (missing := length - len(os.fsencode(path)) - 1) > 60:
        path /= "d" * 40
    path /= "d" * missing
    assert len(os.fsencode(path)) == length
    return path


def _sockets(data: Path) -> list[Path]:
    return [path for path in paths.socket_candidates(data) if path.exists()]


def _round(root: Path, data: Path) -> None:
    """Up, asked, killed; then the same again, and an orderly end that leaves no socket."""
    company = Company(root)
    company.data = data
    node = company.start()
    try:
        rows = json.loads(crewlet(data, "seats", "-o", "json").stdout)
        assert [row["handle"] for row in rows] == ["boss", "dev", "ops", "qa"]
        (socket,) = _sockets(data)
        assert stat.S_IMODE(socket.lstat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert socket.parent.stat().st_uid == os.getuid()
        assert len(os.fsencode(socket)) <= paths.MAX_PATH_BYTES
        assert len(servers_below(data)) == 1
    finally:
        node.kill()
    until(lambda: not servers_below(data), why="no broker is left behind")
    gone = crewlet(data, "seats")
    assert gone.returncode == 3
    assert "Traceback" not in gone.stderr
    with company.running() as again:
        again.send("dev", "after the kill")
        until(lambda: company.lines("end", "dev"), why="the second start works")
        assert again.stop() == 0
    assert not _sockets(data)
    assert "Traceback" not in company.log.read_text()


@pytest.mark.field("C05")
@pytest.mark.parametrize("length", [100, 150])
def test_the_length_of_the_path_is_nobodys_problem(short: Path, length: int) -> None:
    _round(short, _folder_of(short, length))


@pytest.mark.field("C05")
def test_a_space_and_a_letter_of_two_bytes_in_a_long_path(short: Path) -> None:
    _round(short, short / "mes données" / ("é " * 30 + "fin"))


@pytest.mark.long
@pytest.mark.field("C05")
@pytest.mark.parametrize("length", [87, 88, 90, 107, 108, 240, 1000])
def test_around_the_limits_and_far_beyond(short: Path, length: int) -> None:
    _round(short, _folder_of(short, length))
