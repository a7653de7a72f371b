"""A person pauses a seat, or has an outage asked about: on whole nodes, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.messages import BoxState
from actors.seat import INBOX
from crewlet import TurnStopped
from crewlet.coordination.store import PAUSES
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.turn import Turn, Unavailable

from .operated import Operated, on_nodes


class Worker:
    """Turns of many rounds, with a checkpoint between them."""

    def __init__(self, *, checks: bool = True) -> None:
        self.rounds: list[str] = []
        self.ended: list[str] = []
        self._checks = checks

    async def __call__(self, turn: Turn) -> str:
        for _ in range(60):
            self.rounds.append(turn.text)
            await asyncio.sleep(1)
            if self._checks:
                turn.checkpoint()
        self.ended.append(turn.text)
        return "done"


async def last(node: Operated, type: str) -> dict[str, Any]:
    found = await node.recorded(type)
    return flat(found[-1]) if found else {}


def flat(event: Event) -> dict[str, Any]:
    return {key: event.value(key, object, None) for key in event.body}


async def placed(one: Operated, two: Operated) -> tuple[Operated, Operated]:
    """Who works `dev`, and who does not, once the seats are shared."""
    await asyncio.sleep(60)
    return (one, two) if one.node.fleet.owner_of("dev") == one.node.node_id else (two, one)


async def inbox(node: Operated, seat: str = "dev") -> BoxState:
    described = await node.node.runtime.describe(seat)
    assert described is not None
    return next(box for box in described.boxes if box.box == INBOX)


@pytest.mark.certifies(147, 168)
def test_a_pause_that_stops_ends_the_turn_at_its_next_checkpoint_as_worked() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        first = await node.node.send("dev", "one")
        await node.node.send("dev", "two")
        await asyncio.sleep(5.5)
        done = await node.one("seat.pause", handle="dev", stop_running=True)
        assert done["changed"] and "next checkpoint" in done["note"]
        (reason,) = [r for r in await node.ask("why", handle="dev") if r["code"] == "working"]
        assert "ann asked it to stop" in reason["text"]
        await asyncio.sleep(10)
        assert len(worker.rounds) == 6 and worker.ended == []
        stopped, completed = [
            await last(node, type)
            for type in (types.AGENT_TURN_STOPPED, types.AGENT_TURN_COMPLETED)
        ]
        assert (stopped["stopped_by"], stopped["triggers"]) == ("ann", [first.event.id])
        assert stopped["turn_id"] == completed["turn_id"]
        assert (completed["outcome"], completed["stopped"]) == ("stopped", True)
        assert completed["failed"] is False
        paused = await last(node, types.SEAT_PAUSED)
        assert paused["stop_running"] is True
        assert await node.node.ledger.worked("dev", [first.event.id])
        await node.one("seat.resume", handle="dev")
        await asyncio.sleep(120)
        assert worker.ended == ["two"], "what was stopped is not tried again"

    on_nodes(test, turn=worker)


@pytest.mark.certifies(147)
def test_a_pause_is_amended_to_stop_and_told_once_more() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await node.node.send("dev", "one")
        await asyncio.sleep(2.5)
        said = [
            (await node.one("seat.pause", handle="dev", stop_running=stop))["changed"]
            for stop in (False, False, True, True, False)
        ]
        assert said == [True, False, True, False, False]
        await asyncio.sleep(5)
        assert len(worker.rounds) == 3
        paused = [flat(event)["stop_running"] for event in await node.recorded(types.SEAT_PAUSED)]
        assert paused == [False, True]

    on_nodes(test, turn=worker)


def test_a_turn_without_a_checkpoint_ends_by_itself_and_is_whole() -> None:
    worker = Worker(checks=False)

    async def test(node: Operated) -> None:
        await node.node.send("dev", "one")
        await asyncio.sleep(2.5)
        await node.one("seat.pause", handle="dev", stop_running=True)
        await asyncio.sleep(100)
        assert worker.ended == ["one"]
        completed = await last(node, types.AGENT_TURN_COMPLETED)
        assert (completed["outcome"], completed["stopped"]) == ("ack", False)
        assert await node.recorded(types.AGENT_TURN_STOPPED) == []

    on_nodes(test, turn=worker)


def test_a_handler_that_stops_although_nobody_asked_has_failed() -> None:
    async def turn(given: Turn) -> str:
        raise TurnStopped("I felt like it")

    async def test(node: Operated) -> None:
        await node.node.send("dev", "one")
        await asyncio.sleep(0.5)
        completed = await last(node, types.AGENT_TURN_COMPLETED)
        assert (completed["outcome"], completed["failed"]) == ("nak", True)

    on_nodes(test, turn=turn)


def test_a_turn_that_waits_for_a_slot_does_not_begin() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        async with asyncio.TaskGroup() as group:
            slots = [node.node.turns.slot() for _ in range(16)]
            for slot in slots:
                group.create_task(slot.__aenter__())
        await node.node.send("dev", "one")
        await asyncio.sleep(1)
        await node.one("seat.pause", handle="dev", stop_running=True)
        for slot in slots:
            await slot.__aexit__(None, None, None)
        await asyncio.sleep(10)
        assert worker.rounds == []
        await node.one("seat.resume", handle="dev")
        await asyncio.sleep(70)
        assert worker.ended == ["one"]

    on_nodes(test, turn=worker)


@pytest.mark.certifies(147)
def test_the_node_that_runs_the_turn_hears_of_a_pause_written_by_another() -> None:
    worker = Worker()

    async def test(one: Operated, two: Operated) -> None:
        owner, other = await placed(one, two)
        await other.node.send("dev", "one")
        await asyncio.sleep(3.5)
        await other.node.pauses.pause("dev", "bob", stop_running=True)
        await asyncio.sleep(3)
        assert len(worker.rounds) == 4
        assert (await last(owner, types.AGENT_TURN_STOPPED))["stopped_by"] == "bob"
        assert (await inbox(owner)).holds == ("paused",)
        await other.node.pauses.resume("dev", "bob")
        await other.node.send("dev", "two")
        await asyncio.sleep(90)
        assert worker.ended == ["two"]

    on_nodes(test, "n1", "n2", turn=worker)


def test_a_store_that_is_away_is_asked_again_what_the_pause_was() -> None:
    async def test(node: Operated) -> None:
        store = node.node.broker.store
        row = b'{"paused":true,"by":"bob","at":"2026-01-01T00:00:00Z"}'
        get = store.get
        tries: list[str] = []

        async def away(bucket: Any, key: str) -> Any:
            if bucket is PAUSES and len(tries) < 2:
                from crewlet.errors import StoreUnavailable

                tries.append(key)
                raise StoreUnavailable("away")
            return await get(bucket, key)

        store.get = away
        await store.put(PAUSES, "paused.dev", row)
        await asyncio.sleep(12)
        assert (await inbox(node)).holds == ("paused",) and len(tries) == 2

    on_nodes(test)


@pytest.mark.certifies(145)
def test_an_outage_is_seen_in_seats_and_why_and_asked_about_on_demand() -> None:
    away = [True]
    asked: list[float] = []

    async def turn(given: Turn) -> str | Unavailable:
        asked.append(asyncio.get_running_loop().time())
        return Unavailable("HTTP 503 from the model", 120) if away[0] else "done"

    async def test(node: Operated) -> None:
        await node.node.send("dev", "one")
        await asyncio.sleep(5)
        (row,) = [row for row in await node.ask("seats") if row["handle"] == "dev"]
        assert row["state"].startswith("resting (")
        assert "held: provider" in row["state"]
        assert "unavailable since 2" in row["state"] and "HTTP 503 from the model" in row["state"]
        assert "next try " in row["state"]
        first = (await node.ask("why", handle="dev"))[0]
        assert first["code"] == "provider"
        assert "HTTP 503 from the model" in first["text"] and "next try " in first["text"]
        assert "crewlet seat release dev provider" in first["text"]
        await node.one("seat.release", handle="dev", reason="provider")
        await asyncio.sleep(5)
        assert len(asked) == 2
        away[0] = False
        await node.one("tell", consumer="dev", command="lift", reason="provider")
        await asyncio.sleep(5)
        assert len(asked) == 3
        assert "provider" not in [r["code"] for r in await node.ask("why", handle="dev")]
        assert len(await node.recorded(types.LLM_UNAVAILABLE)) == 1

    on_nodes(test, turn=turn)


@pytest.mark.certifies(145)
def test_a_seat_that_is_attached_again_is_still_held_and_one_that_moves_is_not() -> None:
    asked: list[tuple[float, str]] = []

    async def turn(given: Turn) -> Unavailable:
        asked.append((asyncio.get_running_loop().time(), given.text))
        return Unavailable("HTTP 503", 600)

    async def test(one: Operated, two: Operated) -> None:
        owner, other = await placed(one, two)
        await owner.node.send("dev", "one")
        await asyncio.sleep(1)
        await owner.one("seat.detach", handle="dev")
        await owner.one("seat.attach", handle="dev")
        await asyncio.sleep(5)
        assert (await inbox(owner)).holds == ("provider",) and len(asked) == 1
        await owner.one("seat.move", handle="dev", node=other.node.node_id)
        await asyncio.sleep(30)
        assert one.node.fleet.owner_of("dev") == other.node.node_id
        assert len(asked) == 2, "its first turn there is the probe"
        assert (await inbox(other)).holds == ("provider",)

    on_nodes(test, "n1", "n2", turn=turn)
