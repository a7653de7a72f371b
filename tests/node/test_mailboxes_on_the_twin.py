"""Mailboxes stand before any seat is worked; and the twin plays a company the same way twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from actors.delivery import Ack, Mailbox
from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.company import parse_company
from crewlet.events.envelope import decode
from crewlet.inbound.work import AtWork
from crewlet.node import Node
from crewlet.node.hands import Hands
from crewlet.turn import Turn

COMPANY = """
name: Company T
roles:
  - {name: Boss, handle: boss, kind: human}
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""


class Watched(MemoryClient):
    """Notes what is made and what is attached, in order."""

    said: list[tuple[str, str]]

    async def ensure(self, mailbox: Mailbox) -> bool:
        made = await super().ensure(mailbox)
        self.said.append(("ensured", mailbox.topic))
        return made

    async def attach(self, mailbox: Mailbox, epoch: int) -> Any:
        self.said.append(("attached", mailbox.topic))
        return await super().attach(mailbox, epoch)


@pytest.mark.certifies(33, 132)
def test_every_agents_mailbox_is_made_before_any_is_attached() -> None:
    async def main() -> list[tuple[str, str]]:
        client = Watched(MemoryBroker(), "n1")
        client.said = []
        node = Node(
            parse_company(COMPANY),
            broker=client,
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )
        async with node:
            return list(client.said)

    said = run_virtual(main)
    first = next(n for n, (verb, _) in enumerate(said) if verb == "attached")
    made = [topic for verb, topic in said[:first] if verb == "ensured"]
    assert {topics.inbox("dev"), topics.inbox("ops"), topics.INBOUND} <= set(made)
    assert topics.inbox("boss") not in [topic for _, topic in said]
    assert all(verb == "attached" for verb, _ in said[first:])


async def _played() -> list[tuple[str, str, float]]:
    """What happened, and when, without the ids that differ each time."""
    broker = MemoryBroker()

    async def turn(given: Turn) -> str:
        await asyncio.sleep(0.1 * len(given.events[0].body))
        if given.attempt < 3 and given.seat.handle == "ops":
            raise RuntimeError("not yet")
        return given.events[0].body

    node = Node(
        parse_company(COMPANY),
        turn=turn,
        broker=broker.client("n1"),
        clock=LoopClock(asyncio.get_running_loop()),
        web=False,
        admin=False,
    )
    async with node:
        for text in ("a", "bb", "ccc"):
            await node.send("dev", text)
            await node.send("ops", text)
        await asyncio.sleep(60)
        recent = await node.broker.recent(topics.EVENTS, 1000)
    events = [decode(body) for _, body in recent]
    return [(e.type, e.value("answer", str, ""), e.timestamp.timestamp()) for e in events]


@pytest.mark.certifies(13)
def test_the_same_calls_give_the_same_history() -> None:
    once, again = run_virtual(_played, seed=7), run_virtual(_played, seed=7)
    assert once == again
    assert sum(kind == "agent_turn_completed" for kind, _, _ in once) == 3 + 9


def test_a_turn_is_told_the_deadline_of_the_handler_that_runs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A seat's own handler goes before the embedder's, and so does its time."""
    company = parse_company(
        COMPANY.replace(
            "handle: ops}", "handle: ops, handler: {python: 'json:dumps', timeout_s: 60}}"
        )
    )
    told: dict[str, float] = {}

    async def main() -> None:
        node = Node(
            company,
            turn=lambda given: None,
            broker=MemoryBroker().client("n1"),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )

        async def seen(given: Turn) -> Ack:
            assert given.deadline is not None
            now = node.clock.now()
            told[given.seat.handle] = (given.deadline - now).total_seconds()
            return Ack()

        made = Hands.at_work

        def at_work(hands: Hands, handle: str) -> AtWork | None:
            found = made(hands, handle)
            return None if found is None else replace(found, handler=seen)

        monkeypatch.setattr(Hands, "at_work", at_work)
        async with node:
            await node.send("dev", "whose?")
            await node.send("ops", "whose?")
            await asyncio.sleep(5)

    run_virtual(main)
    assert {seat: round(left) for seat, left in told.items()} == {"dev": 1800, "ops": 60}
