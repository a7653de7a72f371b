"""A whole node on the twin and virtual time: hours pass, no wall time does."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from actors.delivery import Defer, Nak
from actors.machines.signals import Hold, Lift
from actors.seat import INBOX
from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.port import DeadLetter
from crewlet.company import parse_company
from crewlet.node import Node
from crewlet.node.dead_letters import replay
from crewlet.turn import Turn

COMPANY = """
name: Company T
roles:
  - {name: Boss, handle: boss, kind: human}
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""


def on_the_twin(
    turn: Callable[[Turn], Coroutine[Any, Any, Any]] | None,
    test: Callable[[Node, MemoryBroker], Coroutine[Any, Any, None]],
) -> None:
    async def main() -> None:
        broker = MemoryBroker()
        node = Node(
            parse_company(COMPANY),
            turn=turn,
            broker=broker.client("n1"),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )
        async with node:
            await test(node, broker)

    run_virtual(main)


async def waiting(node: Node, handle: str) -> tuple[int, int]:
    states = await node.broker.list(topics.inbox(handle))
    return states[0].waiting, states[0].in_flight


async def dead(node: Node, within_s: float = 3600) -> list[DeadLetter]:
    for _ in range(int(within_s)):
        if letters := await node.broker.dead_letters(10):
            return list(letters)
        await asyncio.sleep(1)
    return []


@pytest.mark.certifies(37, 38, 43, 44, 51, 80)
def test_a_handler_that_always_fails_ends_in_the_dead_letters() -> None:
    attempts: list[tuple[int, int | None, float]] = []
    worked: list[str] = []

    async def turn(given: Turn) -> str:
        text = given.events[0].body
        if text == "poison":
            attempts.append((given.attempt, given.headroom, asyncio.get_running_loop().time()))
            raise RuntimeError("always")
        worked.append(text)
        return "fine"

    async def test(node: Node, broker: MemoryBroker) -> None:
        poison = await node.send("dev", "poison")
        for n in range(5):
            await node.send("dev", f"healthy {n}")
        letters = await dead(node)
        assert worked == [f"healthy {n}" for n in range(5)], "others went on meanwhile"
        assert [count for count, _, _ in attempts] == list(range(1, 26))
        assert [left for _, left, _ in attempts] == list(range(24, -1, -1))
        gaps = [b - a for (_, _, a), (_, _, b) in itertools.pairwise(attempts)]
        assert [round(gap) for gap in gaps[:6]] == [1, 2, 4, 8, 16, 30]
        assert all(round(gap) == 30 for gap in gaps[5:])
        (letter,) = letters
        assert "RuntimeError: always" in letter.reason and letter.deliveries == 25
        from crewlet.events import decode

        event = decode(letter.body)
        assert (event.id, event.node) == (poison.event.id, node.node_id)
        assert await waiting(node, "dev") == (0, 0)

    on_the_twin(turn, test)


@pytest.mark.field("C02")
@pytest.mark.certifies(180)
def test_a_replayed_dead_letter_is_a_new_life_once() -> None:
    broken = [True]
    seen: list[tuple[int, str]] = []

    async def turn(given: Turn) -> str | Nak:
        seen.append((given.attempt, given.events[0].id))
        return Nak("broken") if broken[0] else "worked"

    async def test(node: Node, broker: MemoryBroker) -> None:
        sent = await node.send("dev", "hello")
        (letter,) = await dead(node)
        broken[0] = False
        would = await replay(node.broker, node.ledger, letter.id, dry_run=True)
        assert not would.replayed and await dead(node, 1)
        done = await replay(node.broker, node.ledger, letter.id, dry_run=False)
        assert done.replayed
        await asyncio.sleep(5)
        assert seen[25:] == [(1, sent.event.id)], "one new turn, counted from one"
        again = await replay(node.broker, node.ledger, letter.id, dry_run=False)
        assert not again.replayed and "replayed" in again.note
        await asyncio.sleep(60)
        assert len(seen) == 26
        assert not await node.broker.dead_letters(10)

    on_the_twin(turn, test)


@pytest.mark.certifies(39, 40, 41)
def test_a_deferral_keeps_its_place_and_rests() -> None:
    order: list[tuple[str, int, float]] = []

    async def turn(given: Turn) -> str | Defer:
        text = given.events[0].body
        order.append((text, given.attempt, asyncio.get_running_loop().time()))
        if text == "first" and given.attempt == 1:
            return Defer("not now", retry_after_s=10)
        return "ok"

    async def test(node: Node, broker: MemoryBroker) -> None:
        await node.send("dev", "first")
        await node.send("dev", "second")
        await asyncio.sleep(60)
        assert [(text, attempt) for text, attempt, _ in order] == [
            ("first", 1),
            ("first", 2),
            ("second", 2 if order[2][1] == 2 else 1),
        ]
        assert order[1][2] - order[0][2] >= 10 - 1e-6

    on_the_twin(turn, test)


@pytest.mark.certifies(35, 136, 138)
def test_a_held_seat_takes_nothing_and_goes_on_when_lifted() -> None:
    seen: list[int] = []

    async def turn(given: Turn) -> None:
        seen.append(given.attempt)

    async def test(node: Node, broker: MemoryBroker) -> None:
        assert await node.runtime.brake("dev", INBOX, Hold("a person"))
        await asyncio.sleep(1)
        await node.send("dev", "waits")
        await asyncio.sleep(7200)
        assert not seen and await waiting(node, "dev") == (1, 0)
        await node.runtime.brake("dev", INBOX, Lift("a person"))
        await asyncio.sleep(1)
        assert seen == [1], "its count is intact"

    on_the_twin(turn, test)


@pytest.mark.certifies(138)
def test_a_seat_without_a_handler_is_held() -> None:
    async def test(node: Node, broker: MemoryBroker) -> None:
        await node.send("dev", "nobody home")
        await asyncio.sleep(3600)
        assert await waiting(node, "dev") == (1, 0)

    on_the_twin(None, test)


@pytest.mark.certifies(95, 96)
def test_the_gate_lets_so_many_turns_run_and_no_more() -> None:
    running, most = [0], [0]

    async def turn(given: Turn) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(60)
        running[0] -= 1

    async def main() -> None:
        from crewlet.company import NodeIdentity, NodeSettings

        roles = "\n".join(f"  - {{name: S{n}, handle: s{n}}}" for n in range(6))
        settings = NodeSettings(node=NodeIdentity(max_concurrent=2))
        node = Node(
            parse_company(f"name: six\nroles:\n{roles}\n"),
            turn=turn,
            settings=settings,
            broker=MemoryBroker().client("n1"),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )
        async with node:
            for n in range(6):
                await node.send(f"s{n}", "work")
                await node.send(f"s{n}", "more")
            await asyncio.sleep(600)
            assert most[0] == 2
            for n in range(6):
                assert await waiting(node, f"s{n}") == (0, 0)

    run_virtual(main)


@pytest.mark.field("C23")
@pytest.mark.field("C04")
def test_a_turn_that_will_not_end_is_cut_at_the_bound_and_handed_back() -> None:
    async def turn(given: Turn) -> None:
        while True:
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        broker = MemoryBroker()
        node = Node(
            parse_company(COMPANY),
            turn=turn,
            broker=broker.client("n1"),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )
        await node.start()
        await node.send("dev", "stuck")
        await asyncio.sleep(5)
        drained = await node.drain(bound_s=10)
        assert [seat for seat, _ in drained.cut] == ["dev"] and not drained.stuck
        await node.stop()
        successor = broker.client("n2")
        await successor.start()
        box = await successor.attach(topics.inbox_of("dev"), 2)
        (delivery,) = await successor.fetch(box, 1, 0)
        assert delivery.count == 2, "its mail was handed back, at the cost of one delivery"

    run_virtual(main)


def test_leaving_the_block_by_an_exception_still_drains() -> None:
    done: list[str] = []

    async def turn(given: Turn) -> None:
        await asyncio.sleep(3)
        done.append(given.events[0].body)

    async def test(node: Node, broker: MemoryBroker) -> None:
        await node.send("dev", "finish me")
        await asyncio.sleep(1)
        raise ValueError("the embedder's own")

    with pytest.raises(ValueError, match="the embedder's own"):
        on_the_twin(turn, test)
    assert done == ["finish me"]
