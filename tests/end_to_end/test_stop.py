"""Ctrl-C, service stops, process 1: obeyed wherever they fall, and nothing finished runs again."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.harness import SECRET, UP_WITHIN_S, Company, Running, until


@pytest.mark.field("C17")
@pytest.mark.certifies(72)
def test_ctrl_c_in_a_terminal_lets_turns_end(tmp_path: Path) -> None:
    company = Company(tmp_path)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "crewlet", "up", str(company.file)]
    process = subprocess.Popen(
        [*command, "--data", str(company.data), "--port", "0"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "T_SECRET": SECRET},
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    node = Running(company, process)
    try:
        until(node.try_status, UP_WITHIN_S, why="the node answers")
        node.send("dev", "sleep 2")
        node.send("ops", "sleep 2")
        until(lambda: len(company.lines("start")) == 2, why="both turns run")
        os.write(master, b"\x03")
        assert process.wait(10) == 0
    finally:
        node.end()
        os.close(master)
        os.close(slave)
    assert len(company.lines("end")) == 2, "the commands outlived the terminal's signal"
    with company.running() as again:
        again.idle()
        completed = again.events("agent_turn_completed")
        assert len([row for row in completed if row["outcome"] == "ack"]) == 2
    assert len(company.lines("start")) == 2, "neither runs again"


@pytest.mark.field("C17")
def test_a_stop_of_the_whole_group_loses_nothing(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    sent = [node.send("dev", "quick"), node.send("ops", "sleep 2")]
    until(lambda: node.events("agent_turn_completed"), why="one turn is finished, and recorded")
    until(lambda: company.lines("start", "ops"), why="the other runs")
    parent = psutil.Process(node.process.pid)
    for process in [parent, *parent.children(recursive=True)]:
        process.send_signal(signal.SIGTERM)
    node.process.wait(40)
    with company.running() as again:
        again.idle()
    ended = [event for row in company.lines("end") for event in row["events"]]
    assert set(sent) <= set(ended)
    assert ended.count(sent[0]) == 1, "what had finished does not run again"


@pytest.mark.certifies(72)
def test_a_drain_hands_back_what_it_does_not_start(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    node.send("dev", "sleep 1")
    until(lambda: company.lines("start", "dev"), why="the turn runs")
    later = [node.send("dev", f"later {n}") for n in range(5)]
    assert node.stop() == 0
    assert len(company.lines("end", "dev")) == 1
    with company.running() as again:
        again.idle()
    ended = [event for row in company.lines("end", "dev") for event in row["events"]]
    assert sorted(ended[1:]) == sorted(later)


def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    node.send("dev", "sleep 30")
    until(lambda: company.lines("start", "dev"), why="the turn runs")
    children = psutil.Process(node.process.pid).children(recursive=True)
    node.process.send_signal(signal.SIGINT)
    until(lambda: (node.try_status() or {}).get("state") == "draining", why="it drains")
    began = time.monotonic()
    node.process.send_signal(signal.SIGINT)
    assert node.process.wait(5) == 128 + signal.SIGINT
    assert time.monotonic() - began < 2
    _gone, alive = psutil.wait_procs(children, timeout=5)
    assert not alive, "no broker and no command is left behind"


@pytest.mark.field("C35")
def test_followers_do_not_hold_up_the_exit(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    follower = subprocess.Popen(
        [sys.executable, "-m", "crewlet", "events", "--follow", "-o", "jsonl"]
        + ["--data", str(company.data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert follower.stdout is not None
    try:
        sent = until(lambda: _followed(node, follower), why="the follower hears events")
        assert b"agent_turn" in sent
        assert node.stop(within_s=10) == 0
        assert follower.wait(5) == 0
    finally:
        follower.kill()
        node.end()


def _followed(node: Running, follower: subprocess.Popen[bytes]) -> bytes:
    """Send until the follower, which subscribes in its own time, prints a line."""
    assert follower.stdout is not None
    os.set_blocking(follower.stdout.fileno(), False)
    node.send("dev", "for the follower")
    time.sleep(0.2)
    return follower.stdout.read() or b""


@pytest.mark.field("C44")
@pytest.mark.parametrize("after_s", [0.15, 0.3, 0.6, 1.0, 1.6, 2.5])
def test_a_stop_during_the_start_is_obeyed(tmp_path: Path, after_s: float) -> None:
    company = Company(tmp_path)
    node = company.start(wait=False)
    time.sleep(after_s)  # the moment is what is tested, not waited for
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(8) == 0, company.log.read_text()[-2000:]
    until(lambda: not _servers(company.data), 5, why="no broker is left behind")
    with company.running() as again:
        assert again.try_status()


def _servers(data: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or []
        if "nats-server" in (process.info["name"] or "") and any(str(data) in w for w in words):
            found.append(process)
    return found


def _is_zombie(one: psutil.Process) -> bool:
    """Not if it was reaped since it was listed."""
    try:
        return one.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.field("C44")
def test_as_process_1_it_stops_and_reaps(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    can = unshare and subprocess.run([unshare, "-pf", "--mount-proc", "true"], check=False)
    if not can or can.returncode:
        pytest.skip("this machine makes no pid namespaces (unshare -pf --mount-proc)")
    company = Company(tmp_path)
    forker = tmp_path / "fork.py"
    forker.write_text(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid(); time.sleep(0.3); os._exit(0)\n"
        "    os._exit(0)\n"
        "os.wait(); print('done')\n"
    )
    text = company.file.read_text().splitlines()
    text = [
        f"  command: [{sys.executable}, {forker}]" if "command:" in line else line for line in text
    ]
    company.file.write_text("\n".join(text))
    process = subprocess.Popen(
        [str(unshare), "-pf", "--mount-proc", "--kill-child", sys.executable, "-m"]
        + ["crewlet", "up", str(company.file), "--data", str(company.data)]
        + ["--port", "0", "--quiet"],
        env={**os.environ, "T_SECRET": SECRET},
        start_new_session=True,
    )
    node = Running(company, process)
    try:
        until(node.try_status, UP_WITHIN_S, why="the node answers")
        for n in range(20):
            node.send("dev", f"fork {n}")
        node.idle()
        inside = until(lambda: psutil.Process(process.pid).children(), why="process 1 of inside")[0]

        def zombies() -> int:
            return sum(_is_zombie(one) for one in inside.children(recursive=True))

        until(lambda: zombies() == 0, 20, why="orphans are reaped")
        inside.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        node.end()
