"""A stop at any moment of a turn: what had finished is recorded, and runs once.

The moments are drawn from a seed, which is the name of the test; they are what is tested, not
waited for.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.commands import servers_below
from tests.end_to_end.harness import Company, comment, until


def _rounds(company: Company, count: int, seed: int) -> None:
    """Each round: a start, some turns, SIGTERM somewhere; at the end all mail is worked."""
    moments = random.Random(seed)
    sent: list[str] = []
    for _ in range(count):
        node = company.start()
        try:
            sent.append(node.send("dev", f"sleep {moments.uniform(0, 2):.3f}"))
            if moments.random() < 0.5:  # two turns that may end at the same moment
                sent.append(node.send("ops", f"sleep {moments.uniform(0, 2):.3f}"))
            time.sleep(moments.uniform(0, 2))
            assert node.stop() == 0
        finally:
            node.end()
        assert not servers_below(company.data)
    with company.running() as last:
        last.idle()
        ended = Counter(event for row in company.lines("end") for event in row["events"])
        completed = last.events("agent_turn_completed", last=10_000)
    acked = Counter(e for row in completed if row["outcome"] == "ack" for e in row["triggers"])
    started = Counter(event for row in company.lines("start") for event in row["events"])
    assert set(sent) == set(ended), "each is worked"
    assert set(ended.values()) == {1}, "and what had ended is not run again"
    assert acked == ended, "its completion is in the record, once"
    # Nothing was cut either: a drain lets turns of two seconds end.
    assert started == ended


@pytest.mark.field("C37")
@pytest.mark.certifies(72, 89, 162)
def test_stops_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    _rounds(Company(tmp_path), 6, seed=37)


@pytest.mark.long
@pytest.mark.field("C37")
@pytest.mark.parametrize("seed", range(3))
def test_three_hundred_stops_at_random_moments(tmp_path: Path, seed: int) -> None:
    _rounds(Company(tmp_path), 100, seed)


@pytest.mark.field("C37")
@pytest.mark.certifies(162)
def test_a_stop_in_the_moment_in_which_a_turn_ends(tmp_path: Path) -> None:
    """The narrowest place: the end line has just been written, nothing is recorded yet."""
    company = Company(tmp_path)
    for number in range(3):
        node = company.start()
        try:
            sent = [node.send(seat, "sleep 0.3") for seat in ("dev", "ops")]
            until(lambda number=number: len(company.lines("end")) > 2 * number, why="one ends")
            assert node.stop() == 0
        finally:
            node.end()
        assert set(sent) <= {event for row in company.lines("end") for event in row["events"]}
    with company.running() as last:
        last.idle()
        assert len(company.lines("start")) == len(company.lines("end")) == 6
        acked = [r for r in last.events("agent_turn_completed") if r["outcome"] == "ack"]
        assert len(acked) == 6


EMBEDDER = """
import asyncio, json, sys, threading, time, warnings
import psutil
from crewlet import Node, Turn
from crewlet.company import parse_company

COMPANY = "name: E\\nroles:\\n  - {name: Dev, handle: dev}\\n  - {name: Ops, handle: ops}\\n"
data, how = sys.argv[1:]

async def turn(given: Turn) -> str:
    print(json.dumps(["start", given.events[0].id, given.attempt]), flush=True)
    await asyncio.sleep(float(given.text))
    print(json.dumps(["end", given.events[0].id, given.attempt]), flush=True)
    return "done"

class OfTheirOwn(Exception):
    pass

def nothing_stays():
    assert asyncio.all_tasks() == {asyncio.current_task()}, asyncio.all_tasks()
    # asyncio's own thread that waited for the broker has said so, and is ending.
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            thread.join(5)
    assert threading.active_count() == 1, threading.enumerate()
    assert not psutil.Process().children(recursive=True)

async def block():
    company = parse_company(COMPANY)
    async with Node(company, turn=turn, data=data, web=False) as node:
        if how == "look":
            quiet = 0
            while quiet < 10:
                quiet = 0 if node.turns.all_running() else quiet + 1
                await asyncio.sleep(0.05)
            return
        for seat in ("dev", "ops"):
            print(json.dumps(["sent", (await node.send(seat, "0.4")).event.id, 0]), flush=True)
        while len(node.turns.all_running()) < 2:
            await asyncio.sleep(0.01)
        if how == "exception":
            raise OfTheirOwn
        if how == "return":
            return

async def main():
    try:
        await block()
    except OfTheirOwn:
        pass
    nothing_stays()
    if how == "exit":
        sys.exit(7)

asyncio.run(main())
nothing = [t for t in threading.enumerate() if t is not threading.main_thread()]
assert not nothing, nothing
"""


def _embed(folder: Path, how: str, code: int = 0) -> Counter[tuple[str, str]]:
    """Run the embedder, which checks itself; what it printed, counted by kind and event."""
    script = folder / "embedder.py"
    script.write_text(EMBEDDER)
    data = folder / "data"
    # Without -W error: -X dev makes warnings visible, and none may be.
    run = subprocess.run(
        [sys.executable, "-X", "dev", str(script), str(data), how],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert run.returncode == code, run.stderr[-3000:]
    for word in ("Traceback", "Warning", "was destroyed", "never retrieved", "never awaited"):
        assert word not in run.stderr, run.stderr[-3000:]
    assert not servers_below(data)
    lines = [line for line in run.stdout.splitlines() if line.startswith("[")]
    rows = [json.loads(line) for line in lines if not line.startswith("[2")]
    return Counter((kind, event) for kind, event, _ in rows)


@pytest.mark.field("C37")
@pytest.mark.parametrize(("how", "code"), [("return", 0), ("exception", 0), ("exit", 7)])
def test_leaving_the_block_leaves_nothing_behind(tmp_path: Path, how: str, code: int) -> None:
    before = set(psutil.Process().children(recursive=True))
    first = _embed(tmp_path, how, code)
    sent = {event for kind, event in first if kind == "sent"}
    assert {event for kind, event in first if kind == "end"} == sent and len(sent) == 2
    assert not set(psutil.Process().children(recursive=True)) - before
    assert not _embed(tmp_path, "look"), "neither turn is run by the next node"


@pytest.mark.field("C29")
def test_a_collector_that_does_not_answer_delays_nothing(tmp_path: Path) -> None:
    """One that refuses, and one that takes the connection and then says nothing."""
    with socket.socket() as mute, socket.socket() as closed:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        closed.bind(("127.0.0.1", 0))
        for target in (mute, closed):
            folder = tmp_path / str(target.fileno())
            folder.mkdir()
            company = Company(folder)
            endpoint = f"http://127.0.0.1:{target.getsockname()[1]}"
            otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_TRACES_EXPORTER": "otlp"}
            node = company.start(env=otel)
            try:
                began = time.monotonic()
                assert node.post("issue_comment", comment(1, "@octo-dev look")) == 202
                assert time.monotonic() - began < 1
                until(lambda company=company: company.lines("end"), why="worked")
                began = time.monotonic()
                assert node.stop() == 0
                assert time.monotonic() - began < 3
            finally:
                node.end()
