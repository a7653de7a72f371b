"""Dead letters as an operator meets them: a real server, a real node, the real commands.

Twenty-five failures take ten minutes of backoff. The first twenty-four deliveries are made
here, by a client that hands them back, before there is a node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from actors.delivery import BUDGET, HandBack
from crewlet import topics
from crewlet.broker import JetStreamBroker
from crewlet.broker.dial import Address
from crewlet.events import Event, Trace, encode
from crewlet.events import catalogue as types
from crewlet.events.types import TaskAssigned
from tests.end_to_end.commands import crewlet, nats_server, node_file
from tests.end_to_end.harness import Company, until

DECLINE = """open(os.environ["CREWLET_OUTCOME"], "w").write('{"type": "abandon", "reason": "-"}')"""


def _task(text: str, **extras: str) -> Event:
    return Event.new(
        types.TASK_ASSIGNED,
        at=datetime.now(UTC),
        trace=Trace.root(),
        payload={"recipient_handle": "dev", **extras},
        body=TaskAssigned(handle="dev", text=text),
    )


async def _spent(url: str, tasks: list[Event]) -> None:
    """Put tasks into dev's inbox, each with one delivery left."""
    broker = JetStreamBroker(Address((url,), name="test"))
    await broker.start()
    try:
        inbox = topics.inbox_of("dev")
        await broker.ensure(inbox)
        for task in tasks:
            await broker.publish(inbox.topic, encode(task), message_id=task.id)
        attachment = await broker.attach(inbox, 1)
        last = 0
        while last < BUDGET - 1:
            deliveries = await broker.fetch(attachment, len(tasks), 5)
            last = max(delivery.count or 0 for delivery in deliveries)
            await broker.settle([(delivery, HandBack()) for delivery in deliveries])
        await broker.release(attachment)
    finally:
        await broker.stop()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with nats_server(tmp_path / "server") as url:
        yield url


def _json(company: Company, *args: str, code: int = 0) -> Any:
    run = crewlet(company.data, *args, "-o", "json")
    assert run.returncode == code, (args, run.stdout, run.stderr)
    return json.loads(run.stdout)


@pytest.mark.field("C02")
@pytest.mark.certifies(31, 43, 44, 180)
def test_a_dead_letter_from_its_failure_to_its_second_life(tmp_path: Path, url: str) -> None:
    company = Company(tmp_path)
    task = _task("fail, for now")
    asyncio.run(_spent(url, [task]))
    settings = node_file(company, f"stream: {{type: nats, url: '{url}'}}\n")
    with company.running(*settings) as node:
        (row,) = until(lambda: _json(company, "dlq", "list"), why="the last failure buries it")
        assert len(company.lines("start")) == 1, "one delivery was left"
        assert company.lines("start")[0]["attempt"] == BUDGET
        assert row["handle"] == "dev" and row["event_id"] == task.id
        assert row["deliveries"] == BUDGET and "told to fail" in row["reason"]
        shown = _json(company, "dlq", "show", row["id"])
        assert shown["event"]["id"] == task.id and shown["event"]["text"] == "fail, for now"
        table = crewlet(company.data, "dlq", "show", row["id"]).stdout
        assert "told to fail" in table and task.id in table
        # Looking changes nothing, and neither does asking what would happen.
        dry = _json(company, "dlq", "replay", row["id"], "--dry-run")
        assert not dry[0]["replayed"] and "would go to" in dry[0]["note"]
        assert [r["id"] for r in _json(company, "dlq", "list")] == [row["id"]]
        # The handler is repaired; well inside the window in which a broker drops repetitions.
        recorder = tmp_path / "recorder.py"
        recorder.write_text(recorder.read_text().replace('text.startswith("fail")', "False"))
        (again,) = _json(company, "dlq", "replay", row["id"])
        assert again["replayed"] and again["event_id"] == task.id
        assert again["message_id"] != task.id
        until(lambda: company.lines("end"), why="its second life is worked")
        node.idle()
        (turn,) = company.lines("end")
        assert turn["events"] == [task.id] and turn["attempt"] == 1, "counted from zero"
        started = node.events("agent_turn_started")
        assert {row["trace_id"] for row in started} == {task.trace.trace_id}, "one trace"
        (twice,) = _json(company, "dlq", "replay", row["id"], code=3)
        assert not twice["replayed"] and "replayed" in twice["note"]
        assert _json(company, "dlq", "list") == []
        node.idle()
        assert len(company.lines("start")) == 2, "nothing runs a third time"


@pytest.mark.field("C02")
@pytest.mark.certifies(90, 94, 97, 180)
def test_those_of_one_trigger_run_again_and_what_is_given_up_then_is_refused_by_name(
    tmp_path: Path, url: str
) -> None:
    company = Company(tmp_path)
    thread = {"partition_key": "chat:C1", "conversation_identity": "chat:C1"}
    tasks = [_task(f"fail {n}", **thread) for n in range(2)]
    ids = sorted(task.id for task in tasks)
    asyncio.run(_spent(url, tasks))
    settings = node_file(company, f"stream: {{type: nats, url: '{url}'}}\n")
    with company.running(*settings) as node:
        until(lambda: len(_json(company, "dlq", "list")) == 2, why="both are buried")
        dry = _json(company, "dlq", "replay", "--all", "--dry-run")
        assert [row["replayed"] for row in dry] == [False, False]
        assert len(_json(company, "dlq", "list")) == 2
        recorder = tmp_path / "recorder.py"
        recorder.write_text(recorder.read_text().replace('sys.exit("told to fail")', DECLINE))
        again = _json(company, "dlq", "replay", *ids)
        assert [row["replayed"] for row in again] == [True, True], "by the ids of their events"
        until(lambda: sorted(_worked(company)) == ids, why="their second life is given up")
        node.idle()
        turns = {id: row["turn"] for row in company.lines("end") for id in row["events"]}
        assert _json(company, "dlq", "list") == []
        refused = _json(company, "dlq", "replay", *ids, code=3)
        for row in refused:
            assert not row["replayed"] and turns[row["id"]] in row["note"]
            assert "the ledger's row dev." in row["note"]
        node.idle()
        assert sorted(_worked(company)) == ids, "nothing runs a third time"


def _worked(company: Company) -> list[str]:
    return [id for row in company.lines("end") for id in row["events"]]


@pytest.mark.certifies(31)
def test_many_are_replayed_or_dropped_in_one_go(tmp_path: Path, url: str) -> None:
    company = Company(tmp_path)
    tasks = [_task(f"fail {n}") for n in range(4)]
    asyncio.run(_spent(url, tasks))
    settings = node_file(company, f"stream: {{type: nats, url: '{url}'}}\n")
    with company.running(*settings) as node:
        until(lambda: len(_json(company, "dlq", "list")) == 4, why="all four are buried")
        ids = [row["id"] for row in _json(company, "dlq", "list")]
        assert node.stop() == 0
    with company.running(*settings) as node:  # they are the broker's, not the process's
        assert [row["id"] for row in _json(company, "dlq", "list")] == ids
        unasked = crewlet(company.data, "dlq", "drop", ids[0])
        assert unasked.returncode == 3 and "--yes" in unasked.stderr
        assert _json(company, "dlq", "drop", ids[0], "--yes")[0]["dropped"]
        missing = crewlet(company.data, "dlq", "show", ids[0])
        assert missing.returncode != 0 and ids[0] in missing.stderr
        some = _json(company, "dlq", "replay", ids[0], ids[1], code=4)
        assert [row["replayed"] for row in some] == [False, True]
        rest = _json(company, "dlq", "replay", "--all", "--dry-run")
        assert {row["id"] for row in rest} == set(ids[2:])
        assert _json(company, "dlq", "drop", "--all", "--yes")
        assert _json(company, "dlq", "list") == []
