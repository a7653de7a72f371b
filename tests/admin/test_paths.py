"""Where the socket lies, for data folders of any length (field report C05)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from actors.admin import AdminClient, UnsafeFolder, paths, socket_path
from tests.admin.served import Verbs, served


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No session folder: only the one in the temporary folder, here one of the test's own."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(paths, "_runtime_folders", lambda uid: iter(()))
    folder = tmp_path / f"crewlet-{os.getuid()}"
    monkeypatch.setattr(paths, "_tmp_folder", lambda uid: folder)
    return folder


def folder_of(root: Path, length: int, tail: str = "") -> Path:
    """A data folder whose path has exactly `length` bytes."""
    path = root
    while (missing := length - len(os.fsencode(path)) - len(os.fsencode(tail)) - 1) > 60:
        path = path / ("d" * min(50, missing - 10))
    path = path / ("d" * missing + tail)
    assert len(os.fsencode(path)) == length
    return path


@pytest.mark.field("C05")
@pytest.mark.parametrize("length", [90, 100, 108, 150, 1000])
def test_a_node_is_reached_whatever_the_length_of_its_path(
    tmp_path: Path, runtime: Path, length: int
):
    data = folder_of(tmp_path, length)
    with served(data, Verbs().table()) as node:
        path = node.endpoint.path
        assert path is not None
        assert len(os.fsencode(path)) <= paths.MAX_PATH_BYTES
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0 or path.parent == data
        assert len(list(AdminClient(data).call("count", {"to": 2}))) == 2
    assert not path.exists()


@pytest.mark.field("C05")
def test_spaces_and_letters_of_several_bytes_count_as_bytes(tmp_path: Path, runtime: Path):
    short = tmp_path / "a b é"
    with served(short, Verbs().table()) as node:
        assert node.endpoint.path == short / "crewlet.sock"
        assert len(list(AdminClient(short).call("count", {"to": 2}))) == 2
    long = folder_of(tmp_path, 150, " é" * 12)
    with served(long, Verbs().table()) as node:
        assert node.endpoint.path is not None
        assert node.endpoint.path.parent == runtime
        assert len(list(AdminClient(long).call("count", {"to": 2}))) == 2


@pytest.mark.field("C05")
def test_two_data_folders_never_share_a_socket(tmp_path: Path, runtime: Path):
    one, two = folder_of(tmp_path, 150, "one"), folder_of(tmp_path, 150, "two")
    assert socket_path(one) != socket_path(two)
    with served(one, Verbs().table()), served(two, Verbs().table()):
        assert len(list(AdminClient(one).call("count", {"to": 1}))) == 1
        assert len(list(AdminClient(two).call("count", {"to": 2}))) == 2


def test_a_relative_path_and_a_link_lead_to_the_same_socket(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
):
    data = folder_of(tmp_path, 150)
    data.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(data)
    monkeypatch.chdir(data.parent)
    assert socket_path(Path(data.name)) == socket_path(data) == socket_path(link)


def test_without_a_session_folder_a_private_one_is_made(tmp_path: Path, fallback: Path):
    data = folder_of(tmp_path, 150)
    with served(data, Verbs().table()) as node:
        assert node.endpoint.path is not None
        assert node.endpoint.path.parent == fallback
        assert stat.S_IMODE(fallback.stat().st_mode) == 0o700
        assert len(list(AdminClient(data).call("count", {"to": 2}))) == 2


def test_a_node_is_found_from_a_session_with_another_environment(
    tmp_path: Path, fallback: Path, monkeypatch: pytest.MonkeyPatch
):
    data = folder_of(tmp_path, 150)
    with served(data, Verbs().table()):
        session = tmp_path / "session"
        session.mkdir(mode=0o700)
        monkeypatch.setattr(paths, "_runtime_folders", lambda uid: iter((session,)))
        assert len(list(AdminClient(data).call("count", {"to": 2}))) == 2


def test_a_link_in_the_place_of_the_private_folder_is_refused(tmp_path: Path, fallback: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    fallback.symlink_to(elsewhere)
    with pytest.raises(UnsafeFolder, match="link"):
        socket_path(folder_of(tmp_path, 150))


def test_a_private_folder_that_others_may_enter_is_refused(tmp_path: Path, fallback: Path):
    fallback.mkdir()
    fallback.chmod(0o755)
    with pytest.raises(UnsafeFolder, match="chmod 700"):
        socket_path(folder_of(tmp_path, 150))


def test_a_private_folder_of_another_user_is_refused(tmp_path: Path):
    with pytest.raises(UnsafeFolder, match="belongs to user"):
        paths.check_private(tmp_path, os.getuid() + 1)


def test_an_open_session_folder_is_passed_over(tmp_path: Path, runtime: Path):
    runtime.chmod(0o755)
    assert socket_path(folder_of(tmp_path, 150)).parent != runtime
