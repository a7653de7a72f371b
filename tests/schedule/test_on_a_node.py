"""Schedules on whole nodes: the duty and its leases, turns, what operators see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.events import Event, decode
from crewlet.events.triggers import TurnGuardBreach
from crewlet.node import Node
from crewlet.turn import Turn
from tests.node.operated import Operated

COMPANY = """
name: Company T
roles:
  - name: Dev
    handle: dev
    schedules: [{name: daily, cron: 0 9 * * *, text: Look around, timeout_s: 5}]
  - name: Ops
    handle: ops
    schedules: [{name: minutely, cron: '* * * * *', text: Look}]
"""

MORNING = datetime(2026, 6, 2, 8, 58, tzinfo=UTC)


class Morning:
    """Nodes on one twin, from two minutes before nine on; what turns were for, in order."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.clock = LoopClock(asyncio.get_running_loop(), MORNING)
        self.turns: list[tuple[str, str]] = []
        self.takes_s: dict[str, float] = {}
        self._stack = AsyncExitStack()

    async def node(self, id: str) -> Node:
        node = Node(
            parse_company(COMPANY, env={}),
            turn=self._turn,
            settings=NodeSettings(node=NodeIdentity(id=id)),
            broker=self.broker.client(id),
            clock=self.clock,
            web=False,
            admin=False,
        )
        return await self._stack.enter_async_context(node)

    async def _turn(self, turn: Turn) -> str:
        label = str(turn.events[0].metadata["label"])
        self.turns.append((turn.seat.handle, label[11:16]))
        await asyncio.sleep(self.takes_s.get(turn.seat.handle, 0))
        return "done"

    async def until(self, minutes: float) -> None:
        """So many minutes after the beginning."""
        end = MORNING + timedelta(minutes=minutes)
        await asyncio.sleep((end - self.clock.now()).total_seconds())

    async def recorded(self, node: Node, type: str) -> list[Event]:
        await node.queue.flush(5)
        found = [decode(body) for _, body in await node.broker.recent("crewlet.events.>", 9999)]
        return [event for event in found if event.type == type]

    async def close(self) -> None:
        await self._stack.aclose()


def in_the_morning(play: Callable[[Morning], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        morning = Morning()
        try:
            await play(morning)
        finally:
            await morning.close()

    run_virtual(main)


@pytest.mark.certifies(122)
def test_one_node_of_a_fleet_fires_and_a_turn_comes_of_it() -> None:
    async def play(morning: Morning) -> None:
        nodes = [await morning.node(f"n{number}") for number in (1, 2, 3)]
        await morning.until(6)
        assert morning.turns.count(("dev", "09:00")) == 1
        ops = [label for seat, label in morning.turns if seat == "ops"]
        assert ops == sorted(set(ops)) and "09:03" in ops
        leases = await nodes[0].fleet.leases()
        [duty] = [row for row in leases if row.resource == "worker:scheduler"]
        assert duty.state == "held"

    in_the_morning(play)


@pytest.mark.certifies(122)
def test_the_duty_goes_on_when_its_node_leaves() -> None:
    async def play(morning: Morning) -> None:
        nodes = {id: await morning.node(id) for id in ("n1", "n2")}
        await morning.until(1.5)
        [duty] = [
            row for row in await nodes["n1"].fleet.leases() if row.resource == "worker:scheduler"
        ]
        await nodes[duty.owner.partition(":")[0]].stop()
        await morning.until(6)
        assert morning.turns.count(("dev", "09:00")) == 1
        ops = [label for seat, label in morning.turns if seat == "ops"]
        assert ops == sorted(set(ops)) and "09:03" in ops

    in_the_morning(play)


def test_a_scheduled_turn_may_take_as_long_as_its_schedule_says() -> None:
    async def play(morning: Morning) -> None:
        node = await morning.node("n1")
        morning.takes_s["dev"] = 60
        await morning.until(3)
        ended = [
            event
            for event in await morning.recorded(node, "agent_turn_completed")
            if event.value("agent_role", str, "") == "dev"
        ]
        assert ended[0].value("reason", str, "") == "timeout after 5 s"
        assert ended[0].value("duration_s", float, 0) == pytest.approx(5, abs=0.01)

    in_the_morning(play)


@pytest.mark.certifies(161, 162)
def test_a_scheduled_turn_that_is_out_of_time_says_so_each_time_and_is_tried_again() -> None:
    async def play(morning: Morning) -> None:
        node = await morning.node("n1")
        morning.takes_s = {"dev": 60}
        await morning.until(2.2)
        morning.takes_s = {}
        await morning.until(4)
        assert len([who for who, _ in morning.turns if who == "dev"]) >= 2, "it is tried again"
        ended = await morning.recorded(node, "agent_turn_completed")
        failed = [one for one in ended if one.value("failed", bool, False)]
        breaches = await morning.recorded(node, "turn.guard_breach")
        assert failed and len(breaches) == len(failed) == len({one.id for one in breaches})
        for breach, turn in zip(breaches, failed, strict=True):
            body = breach.read(TurnGuardBreach)
            assert body.guard == "scheduled_timeout" and body.reason == "timeout after 5 s"
            assert body.turn_id == turn.value("turn_id", str, "") and body.agent_role == "dev"
            assert body.triggers == turn.value("triggers", tuple[str, ...], ())
        assert await morning.recorded(node, "turn_trigger_skipped") == []
        assert ended[-1].value("outcome", str, "") == "ack"

    in_the_morning(play)


def test_what_operators_see_of_schedules() -> None:
    async def play(morning: Morning) -> None:
        operated = Operated(await morning.node("n1"))
        await morning.until(1)
        daily, _ = await operated.ask("schedule.ls")
        assert (daily["scope"], daily["name"]) == ("role dev", "daily")
        assert (daily["next"], daily["last"]) == ("2026-06-02T09:00+00:00", "")
        await morning.until(3)
        daily, minutely = await operated.ask("schedule.ls")
        assert (daily["next"][:10], daily["last"][11:16]) == ("2026-06-03", "09:00")
        assert daily["outcome"] == "fired" and daily["since"].startswith("2026-06-02T08:58")
        assert minutely["last"][11:16] in ("09:00", "09:01"), "the look of this minute, or the last"
        assert [row["name"] for row in await operated.ask("names")][:1] == ["dev"]

    in_the_morning(play)


def test_operators_see_who_had_no_mailbox_and_what_to_do() -> None:
    async def play(morning: Morning) -> None:
        node = await morning.node("n1")
        operated = Operated(node)
        await operated.one("seat.detach", handle="dev")
        await node.broker.delete(topics.inbox_of("dev"))
        await morning.until(3)
        daily, minutely = await operated.ask("schedule.ls")
        assert daily["outcome"] == "no_mailbox" and "fired" not in daily["note"]
        assert "`crewlet seat attach dev`" in daily["note"]
        assert (minutely["outcome"], minutely["note"]) == ("fired", "")

    in_the_morning(play)
