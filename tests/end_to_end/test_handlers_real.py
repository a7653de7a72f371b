"""Python handlers that will not stop, in a real node: a thread, and a coroutine that swallows
its cancellation. Bodies are counted inside them."""

from __future__ import annotations

import json
import re
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.commands import crewlet, node_file
from tests.end_to_end.harness import COMPANY, Company, Running, until

BODIES = """
import asyncio, json, os, time
RECORD = os.path.join(os.path.dirname(__file__), "bodies.jsonl")
def write(kind, turn):
    line = {"kind": kind, "turn": turn.turn_id, "text": turn.text, "at": time.monotonic()}
    with open(RECORD, "a") as file:
        file.write(json.dumps(line) + "\\n")
def sleeper(turn):
    write("start", turn)
    time.sleep(float(turn.text.split()[1]))
    write("end", turn)
async def swallower(turn):
    write("start", turn)
    while not turn.text.startswith("quick"):
        try:
            await asyncio.sleep(0.1)
        except BaseException:
            write("swallowed", turn)
    write("end", turn)
async def late(turn):
    write("start", turn)
    try:
        await asyncio.sleep(30 if turn.attempt == 1 else 0)
    except asyncio.CancelledError:
        await asyncio.sleep(0.5)
    write("end", turn)
    return "said too late" if turn.attempt == 1 else "said in time"
"""


class Bodies(Company):
    """Company T whose `dev` runs one of the functions above; the others run the recorder."""

    def __init__(self, folder: Path, function: str, timeout_s: float) -> None:
        handler = f"handler: {{python: 'bodies:{function}', timeout_s: {timeout_s}}}, contact"
        role = "{name: Dev, handle: dev, contact"
        super().__init__(folder, COMPANY.replace(role, f"{{name: Dev, handle: dev, {handler}"))
        (folder / "bodies.py").write_text(BODIES)

    def bodies(self, kind: str = "start") -> list[dict[str, Any]]:
        path = self.folder / "bodies.jsonl"
        rows = path.read_text().splitlines() if path.exists() else []
        return [row for row in map(json.loads, rows) if row["kind"] == kind]

    def most_at_once(self) -> int:
        path = self.folder / "bodies.jsonl"
        at_once = most = 0
        for row in map(json.loads, path.read_text().splitlines()):
            at_once += {"start": 1, "end": -1}.get(row["kind"], 0)
            most = max(most, at_once)
        return most


def _state(node: Running, handle: str) -> str:
    run = crewlet(node.company.data, "seats", "-o", "json")
    return next(str(row["state"]) for row in json.loads(run.stdout) if row["handle"] == handle)


def _completed(node: Running, turn: str) -> list[dict[str, Any]]:
    return [row for row in node.events("agent_turn_completed") if row["turn_id"] == turn]


@pytest.mark.field("C04")
@pytest.mark.certifies(96)
def test_a_thread_past_its_timeout_keeps_its_seat_and_nobody_elses(tmp_path: Path) -> None:
    company = Bodies(tmp_path, "sleeper", 0.5)
    settings = node_file(company, "node: {max_concurrent: 2}\n")
    with company.running(*settings) as node:
        for name in ("A", "B", "C"):
            node.send("dev", f"sleep 3 {name}")
        until(company.bodies, why="the first body runs")
        first = company.bodies()[0]
        state = until(
            lambda: (s := _state(node, "dev")).startswith("stuck") and s, why="the seat is stuck"
        )
        assert first["turn"] in state and "timeout" in state
        why = node.call("why", handle="dev")
        assert why[0]["code"] == "stuck", "what matters first"
        started = node.events("agent_turn_started")[0]
        assert first["turn"] == started["turn_id"] and first["turn"] in why[0]["text"]
        since = re.search(r"since (.*) UTC .*: timeout", why[0]["text"])
        assert since is not None, why
        off = datetime.fromisoformat(started["timestamp"]) - datetime.fromisoformat(f"{since[1]}Z")
        assert abs(off.total_seconds()) < 2
        assert "stuck" not in {reason["code"] for reason in node.call("why", handle="ops")}
        assert not _completed(node, first["turn"]), "it is over when its body is"
        sent = 0
        while len(company.bodies("end")) < 2:  # the other slot of the node serves the others
            node.send("ops", f"meanwhile {sent}")
            sent += 1
            until(
                lambda sent=sent: len(company.lines("end", "ops")) == sent, 3, why="ops is served"
            )
        done = until(lambda: _completed(node, first["turn"]), why="the record of the first turn")
        assert done[0]["outcome"] == "nak" and done[0]["failed"]
        assert done[0]["reason"].startswith("timeout")
        assert company.most_at_once() == 1
        assert sent > 3
        node.kill()


@pytest.mark.field("C04")
def test_a_second_ctrl_c_waits_for_no_thread(tmp_path: Path) -> None:
    company = Bodies(tmp_path, "sleeper", 0.5)
    node = company.start()
    try:
        node.send("dev", "sleep 30")
        until(lambda: _state(node, "dev").startswith("stuck"), why="the seat is stuck")
        node.process.send_signal(signal.SIGINT)
        until(lambda: (node.try_status() or {}).get("state") == "draining", why="it drains")
        began = time.monotonic()
        assert node.stop(signal.SIGINT, within_s=5) == 128 + signal.SIGINT
        assert time.monotonic() - began < 1
    finally:
        node.end()


@pytest.mark.field("C23")
@pytest.mark.certifies(72)
def test_a_swallowed_cancellation_ends_neither_the_drain_nor_the_mail(tmp_path: Path) -> None:
    company = Bodies(tmp_path, "swallower", 0.5)
    node = company.start(*node_file(company, "drain_timeout_s: 1.5\n"))
    try:
        stuck = node.send("dev", "never ends")
        until(lambda: company.bodies("swallowed"), why="the timeout was swallowed")
        behind = node.send("dev", "quick, of another conversation")
        node.send("ops", "undisturbed")
        until(lambda: company.lines("end", "ops"), why="another seat is served")
        turn = company.bodies()[0]["turn"]
        assert turn in _state(node, "dev")
        assert len(company.bodies()) == 1, "the next turn waits for the body"
        began = time.monotonic()
        assert node.stop(within_s=15) == 0
        took = time.monotonic() - began
        assert 1.4 < took < 6, "the bound, and a moment for the bodies to notice"
    finally:
        node.end()
    log = company.log.read_text()
    assert "dev: the turn of" in log and "did not end in time" in log and "handed back" in log
    assert "handler_did_not_stop" in log and turn in log
    assert "Task was destroyed" not in log
    # The mail is there, with what it cost; a handler that is repaired works it.
    (tmp_path / "bodies.py").write_text(BODIES.replace("while not", "while False and not"))
    before = len(company.bodies("end"))
    with company.running() as again:
        until(lambda: len(company.bodies("end")) - before == 2, why="both are worked")
        again.idle()
        worked = [row for row in again.events("agent_turn_completed") if row["outcome"] == "ack"]
        assert {stuck, behind} <= {trigger for row in worked for trigger in row["triggers"]}
        started = [row for row in again.events("agent_turn_started") if stuck in row["triggers"]]
        assert [row["attempt"] for row in started] == [1, 2], "handed back at one delivery"


@pytest.mark.field("C23")
def test_what_a_body_says_after_its_timeout_changes_nothing(tmp_path: Path) -> None:
    company = Bodies(tmp_path, "late", 0.5)
    with company.running() as node:
        node.send("dev", "work")
        until(lambda: len(company.bodies("end")) == 2, why="it runs again and answers")
        rows = until(
            lambda: (r := node.events("agent_turn_completed")) and len(r) == 2 and r,
            why="both are recorded",
        )
        assert [row["outcome"] for row in rows] == ["nak", "ack"]
        assert rows[0]["reason"].startswith("timeout") and rows[1]["answer"] == "said in time"
        assert company.most_at_once() == 1
    assert "handler_ended_late" in company.log.read_text()
