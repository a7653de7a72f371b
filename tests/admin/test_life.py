"""Start and stop: who may call, what a dead node left, and how callers are let go."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from actors.admin import AdminClient, AlreadyServed, Caller, CallFailed, Endpoint, NotRunning, Verb
from actors.admin import endpoint as endpoint_module
from tests.admin.served import Nothing, Verbs, served


def test_the_socket_is_for_this_user_only(tmp_path: Path):
    with served(tmp_path / "data", Verbs().table()) as node:
        assert node.endpoint.path == tmp_path / "data" / "crewlet.sock"
        found = node.endpoint.path.lstat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600


def test_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with served(tmp_path / "data", Verbs().table()) as node:
        monkeypatch.setattr(endpoint_module, "_peer", lambda connection: os.getuid() + 4711)
        with pytest.raises(CallFailed, match="the node's own user") as raised:
            list(AdminClient(node.data_dir).call("count", {"to": 1}))
        assert raised.value.failure.exit == 3


def test_a_socket_of_another_user_gets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from actors.admin import peer

    with served(tmp_path / "data", Verbs().table()) as node:
        monkeypatch.setattr(peer, "uid_of", lambda connection: os.getuid() + 4711)
        with pytest.raises(CallFailed, match="another user"):
            list(AdminClient(node.data_dir).call("count", {"to": 1}))


def test_callers_beyond_the_bound_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoint_module, "MAX_CONNECTIONS", 1)
    with served(tmp_path / "data", Verbs().table()) as node:
        client = AdminClient(node.data_dir)
        following = client.call("follow")
        next(following)
        with pytest.raises(CallFailed, match="connected already"):
            list(client.call("count", {"to": 1}))
        following.close()  # type: ignore[attr-defined]


def test_a_stop_ends_followers_cleanly_and_removes_the_socket(tmp_path: Path):
    verbs = Verbs()
    with served(tmp_path / "data", verbs.table()) as node:
        client = AdminClient(node.data_dir)
        rows: list[object] = []
        follower = threading.Thread(target=lambda: rows.extend(client.call("follow")))
        follower.start()
        assert verbs.started.wait(10)
        path = node.endpoint.path
        assert path is not None
        node.stop()
        follower.join(10)
        assert not follower.is_alive()
        assert rows == [{"type": "first"}]
        assert verbs.closed.is_set()
        assert not path.exists()
        with pytest.raises(NotRunning):
            list(client.call("count", {"to": 1}))
        node.stop()


def test_a_stop_gives_other_verbs_a_moment_and_then_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(endpoint_module, "FINISH_S", 0.2)
    verbs = Verbs()
    failures: list[CallFailed] = []

    def call() -> None:
        try:
            list(client.call("slow"))
        except CallFailed as error:
            failures.append(error)

    with served(tmp_path / "data", verbs.table()) as node:
        client = AdminClient(node.data_dir)
        caller = threading.Thread(target=call)
        caller.start()
        assert verbs.started.wait(10)
        node.stop()
        caller.join(10)
    assert [error.failure.code for error in failures] == ["stopping"]
    assert failures[0].failure.exit == 1


def test_a_stop_waits_for_a_verb_that_ends_by_itself(tmp_path: Path):
    started, release = threading.Event(), asyncio.Event()
    rows: list[object] = []

    async def last(args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        started.set()
        await release.wait()
        yield "done"

    with served(tmp_path / "data", {"last": Verb(Nothing, last)}) as node:
        client = AdminClient(node.data_dir)
        caller = threading.Thread(target=lambda: rows.extend(client.call("last")))
        caller.start()
        assert started.wait(10)
        node.loop.call_soon_threadsafe(node.loop.call_later, 0.1, release.set)
        node.stop()
        caller.join(10)
    assert rows == ["done"]


def test_silent_and_deaf_callers_do_not_hold_up_a_stop(tmp_path: Path):
    with served(tmp_path / "data", Verbs().table()) as node:
        silent, deaf = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        with silent, deaf:
            silent.connect(str(node.endpoint.path))
            deaf.connect(str(node.endpoint.path))
            deaf.sendall(b'{"verb":"count","args":{"to":1000,"size":100000}}\n')
            deaf.recv(1)
            node.stop()


def test_the_remains_of_a_dead_node_are_removed(tmp_path: Path):
    path = tmp_path / "crewlet.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.exists()
    with served(tmp_path, Verbs().table()) as node:
        assert len(list(AdminClient(node.data_dir).call("count", {"to": 2}))) == 2


def test_a_killed_node_leaves_a_socket_that_the_next_one_takes(tmp_path: Path):
    script = (
        "import asyncio, os, pathlib, sys\n"
        "from actors.admin import Endpoint\n"
        "async def run():\n"
        "    await Endpoint(pathlib.Path(sys.argv[1]), {}).start()\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(run())\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -9
    assert (tmp_path / "crewlet.sock").is_socket()
    with pytest.raises(NotRunning):
        list(AdminClient(tmp_path).call("count"))
    with served(tmp_path, Verbs().table()) as node:
        assert len(list(AdminClient(node.data_dir).call("count", {"to": 2}))) == 2


def test_a_living_node_keeps_its_socket(tmp_path: Path):
    with served(tmp_path, Verbs().table()) as node:
        with pytest.raises(AlreadyServed, match="another process answers"):
            node.run(Endpoint(tmp_path, {}).start())
        assert len(list(AdminClient(node.data_dir).call("count", {"to": 2}))) == 2


def test_what_is_no_socket_is_left_alone(tmp_path: Path):
    path = tmp_path / "crewlet.sock"
    path.write_text("precious")
    with pytest.raises(AlreadyServed, match="is no socket"):
        asyncio.run(Endpoint(tmp_path, {}).start())
    assert path.read_text() == "precious"


def test_a_stop_leaves_the_socket_of_a_successor(tmp_path: Path):
    with served(tmp_path, Verbs().table()) as node:
        path = node.endpoint.path
        assert path is not None
        path.unlink()
        with served(tmp_path, Verbs().table()) as successor:
            node.stop()
            assert len(list(AdminClient(successor.data_dir).call("count", {"to": 2}))) == 2
