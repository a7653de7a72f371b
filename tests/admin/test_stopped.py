"""A node whose process was stopped (SIGSTOP, Ctrl-Z): who asks it hears that, and soon."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.admin import AdminClient, CallFailed, NoAnswer, peer
from actors.admin import client as client_module

SERVE = """\
import asyncio, pathlib, sys
from actors.admin import Endpoint
from tests.admin.served import Verbs

async def run():
    await Endpoint(pathlib.Path(sys.argv[1]), Verbs().table()).start()
    print(flush=True)
    await asyncio.Event().wait()

asyncio.run(run())
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves; the test may stop it, and it is ended whatever the test does."""
    command = [sys.executable, "-c", SERVE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


@pytest.mark.parametrize("verb", ["count", "follow"])
def test_a_stopped_node_is_said_to_be_that(
    node: subprocess.Popen[bytes], tmp_path: Path, verb: str
):
    """Also to who would wait for ever: nothing comes from it by itself."""
    stop(node)
    calling = AdminClient(tmp_path).call_raw(
        verb, {"to": 1} if verb == "count" else {}, endless=verb == "follow"
    )
    began = time.monotonic()
    with pytest.raises(NoAnswer, match=f"{node.pid} is stopped: `kill -CONT {node.pid}`"):
        list(calling)
    assert time.monotonic() - began < client_module.SILENCE_S / 4


@pytest.mark.parametrize("endless", [False, True])
def test_a_stopped_node_is_said_to_be_that_before_it_has_read_what_it_is_asked(
    node: subprocess.Popen[bytes], tmp_path: Path, endless: bool
):
    """A company file may be larger than what a socket holds of it."""
    stop(node)
    began = time.monotonic()
    with pytest.raises(NoAnswer, match=f"{node.pid} is stopped"):
        list(AdminClient(tmp_path).call_raw("count", {"to": "x" * (1 << 20)}, endless=endless))
    assert time.monotonic() - began < client_module.SILENCE_S / 4


def test_what_is_larger_than_a_socket_arrives_whole(
    node: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_module, "LOOK_S", 0.05)
    text = "x" * (1 << 20)
    with pytest.raises(CallFailed, match="Expected `int`"):
        list(AdminClient(tmp_path).call("count", {"to": text}))


def test_a_follower_hears_that_its_node_was_stopped(node: subprocess.Popen[bytes], tmp_path: Path):
    following = AdminClient(tmp_path).call_raw("follow", endless=True)
    assert next(following)
    stop(node)
    with pytest.raises(NoAnswer, match="is stopped"):
        next(following)


def test_so_many_wait_for_a_stopped_node_that_none_is_let_in(
    node: subprocess.Popen[bytes], tmp_path: Path
):
    stop(node)
    waiting = []
    try:
        with pytest.raises(BlockingIOError):
            while len(waiting) < 10_000:
                caller = socket.socket(socket.AF_UNIX)
                waiting.append(caller)
                caller.setblocking(False)
                caller.connect(str(tmp_path / "crewlet.sock"))
        with pytest.raises(NoAnswer, match="it lets nobody in: its process is stopped"):
            list(AdminClient(tmp_path).call("count", {"to": 1}))
    finally:
        for caller in waiting:
            caller.close()


def test_a_node_that_takes_its_time_is_waited_for(
    node: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_module, "LOOK_S", 0.05)
    monkeypatch.setattr(client_module, "SILENCE_S", 0.2)
    with pytest.raises(NoAnswer, match=f"{node.pid} said nothing for 0 s"):
        list(AdminClient(tmp_path).call("slow"))


def test_who_runs_is_not_stopped(node: subprocess.Popen[bytes]):
    assert not peer.is_stopped(os.getpid())
    assert not peer.is_stopped(0)
    stop(node)
    assert peer.is_stopped(node.pid)
