"""Forty minutes without a provider, on a whole node in virtual time: the handler that a company
file names, against an endpoint that is away and comes back."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections import Counter, defaultdict
from typing import Any

import httpx
import pytest

from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.company import parse_company
from crewlet.events import Event, Trace, decode
from crewlet.events import catalogue as types
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted
from crewlet.handlers.openai.client import Client
from crewlet.node import Node
from crewlet.turn import Turn, Unavailable
from tests.node.operated import Operated
from tests.node.revised import DEV, HEAD, Fleet, on_a_fleet, text

SEATS = ("dev", "ops", "qa")
COMPANY = "name: Company T\nroles:\n" + "".join(
    f"  - {{name: {seat}, handle: {seat}, "
    f"handler: {{openai: {{model: m, base_url: 'http://models.test/{seat}/v1'}}}}}}\n"
    for seat in SEATS
)
MINUTE = 60.0
AWAY_S = 40 * MINUTE
MESSAGES, CONVERSATIONS = 200, 60


class Provider:
    """503 until `limited_s`, 429 until forty minutes are over, then well. `honest`: its list of
    models is away with the rest; else that says all the time that all is well."""

    def __init__(self, *, honest: bool, limited_s: float) -> None:
        self.honest = honest
        self.limited_s = limited_s
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.transport = httpx.MockTransport(self.answer)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        seat, now = request.url.path.split("/")[1], asyncio.get_running_loop().time()
        self.asked[seat].append(now)
        if request.method == "GET" and not self.honest:
            return httpx.Response(200, json={"data": []})
        if now < self.limited_s:
            return httpx.Response(503, text="no capacity")
        if now < AWAY_S:
            return httpx.Response(429, headers={"Retry-After": "120"})
        await asyncio.sleep(2)
        call = {"name": "reply", "arguments": json.dumps({"text": f"{seat} has seen it"})}
        message = {"role": "assistant", "tool_calls": [{"id": "1", "function": call}]}
        return httpx.Response(200, json={"choices": [{"message": message}]})


class Played:
    """What the record says of a whole outage."""

    def __init__(self) -> None:
        self.sent: dict[str, list[str]] = defaultdict(list)
        self.events: list[Event] = []
        self.dead = 0
        self.why: list[dict[str, Any]] = []

    def of(self, type: str) -> list[Event]:
        return [event for event in self.events if event.type == type]


async def publish(node: Node, played: Played) -> None:
    """200 messages for 60 conversations, over the first ten minutes."""
    chance = random.Random(8)
    conversations = [*range(CONVERSATIONS)] + chance.choices(range(CONVERSATIONS), k=140)
    for n, conversation in enumerate(conversations):
        await asyncio.sleep(chance.expovariate(1 / 3.0))
        seat, key = SEATS[conversation % 3], f"chat:C{conversation}"
        event = Event.new(
            types.TASK_ASSIGNED,
            id=f"e-{n:03}",
            at=node.clock.now(),
            trace=Trace.root(),
            payload={"partition_key": key, "conversation_identity": key},
            body={"handle": seat, "text": f"message {n}", "sender": "boss"},
        )
        await node.queue.publish(topics.inbox(seat), event)
        played.sent[key].append(event.id)


def play(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Played:
    """The outage and half an hour more."""
    init = Client.__init__

    def faked(client: Client, endpoint: Any, transport: Any = None, **options: Any) -> None:
        init(client, endpoint, provider.transport, **options)

    monkeypatch.setattr(Client, "__init__", faked)
    played = Played()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        broker = MemoryBroker()
        node = Node(
            parse_company(COMPANY),
            broker=broker.client("n1"),
            clock=LoopClock(loop),
            web=False,
            admin=False,
        )
        async with node:
            await publish(node, played)
            await asyncio.sleep(30 * MINUTE - loop.time())
            for seat in SEATS:
                played.why += (await Operated(node).ask("why", handle=seat))[:1]
            await asyncio.sleep(AWAY_S + 30 * MINUTE - loop.time())
            await node.queue.flush(5)
            played.dead = len(await node.broker.dead_letters(10))
            found = await node.broker.recent("crewlet.events.>", 99_999)
            played.events = [decode(body) for _, body in found]

    run_virtual(main)
    return played


@pytest.mark.field("C08")
@pytest.mark.certifies(145, 170)
@pytest.mark.parametrize(
    ("honest", "limited_s"),
    [(True, 20 * MINUTE), (False, 20 * MINUTE), (True, 0.0)],
    ids=["probe", "deliveries", "limited"],
)
def test_forty_minutes_without_a_provider_cost_no_mail(
    honest: bool, limited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(honest=honest, limited_s=limited_s)
    played = play(provider, monkeypatch)
    assert played.dead == 0

    ends = [event.read(AgentTurnCompleted) for event in played.of(types.AGENT_TURN_COMPLETED)]
    assert {end.outcome for end in ends} == {"unavailable", "ack"}
    worked = [trigger for end in ends if end.outcome == "ack" for trigger in end.triggers]
    assert Counter(worked) == Counter(id for ids in played.sent.values() for id in ids)
    assert len(worked) == MESSAGES
    for ids in played.sent.values():
        assert sorted(ids, key=worked.index) == ids, "each conversation in its order"

    starts = [event.read(AgentTurnStarted) for event in played.of(types.AGENT_TURN_STARTED)]
    most = max(start.attempt for start in starts)
    assert most <= (3 if honest else 13), "of 25"
    assert len(played.of(types.LLM_UNAVAILABLE)) == len(SEATS), "once for each seat"
    assert [reason["code"] for reason in played.why] == ["provider"] * 3
    assert all("HTTP 429" in reason["text"] for reason in played.why)

    for asked in provider.asked.values():
        down = [at for at in asked if at < AWAY_S]
        gaps = [b - a for a, b in itertools.pairwise(down)]
        assert gaps and min(gaps) >= 1.0, "never more often than once a second"
        assert len(down) <= (12 if honest else 20)
        late = [(a, b) for a, b in itertools.pairwise(asked) if limited_s <= a < AWAY_S]
        told = [b - a for a, b in late if honest or b - a > 1.5]
        assert told and min(told) >= 120.0, "Retry-After is honoured"


ONE = """
name: Company T
handler: {openai: {model: m, base_url: 'http://models.test/one/v1'}}
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""


@pytest.mark.field("C08")
@pytest.mark.certifies(145)
def test_a_message_that_a_provider_chokes_on_becomes_a_dead_letter_and_the_rest_is_worked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It draws 500 each time; its list of models and the other seat's turns are well."""
    init = Client.__init__

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"data": []})
        if b"poison" in request.content:
            return httpx.Response(500, text="tokenizer panicked")
        return httpx.Response(200, json={"choices": [{"message": {"content": "seen"}}]})

    def faked(client: Client, endpoint: Any, transport: Any = None, **options: Any) -> None:
        init(client, endpoint, httpx.MockTransport(answer), **options)

    monkeypatch.setattr(Client, "__init__", faked)

    async def main() -> None:
        broker, loop = MemoryBroker(), asyncio.get_running_loop()
        node = Node(
            parse_company(ONE),
            broker=broker.client("n1"),
            clock=LoopClock(loop),
            web=False,
            admin=False,
        )
        async with node:
            await node.send("dev", "poison")
            for n in range(60):
                await node.send("ops", f"elsewhere {n}")
                await node.send("dev", f"well {n}")
                await asyncio.sleep(30)
            await node.queue.flush(5)
            (dead,) = await node.broker.dead_letters(10)
            assert "HTTP 500" in dead.reason and "worked for others" in dead.reason
            found = await node.broker.recent("crewlet.events.>", 99_999)
            ends = [
                event.read(AgentTurnCompleted)
                for event in map(decode, (body for _, body in found))
                if event.type == types.AGENT_TURN_COMPLETED
            ]
            assert Counter(end.agent_role for end in ends if end.outcome == "ack") == {
                "dev": 60,
                "ops": 60,
            }
            failed = [end for end in ends if end.outcome == "nak"]
            assert len(failed) > 8 and {end.agent_role for end in failed} == {"dev"}

    run_virtual(main)


async def away(turn: Turn) -> Unavailable:
    """A handler that a company file names."""
    return Unavailable("HTTP 401: the key was taken back", 3600)


async def well(turn: Turn) -> str:
    return f"worked {turn.text}"


@pytest.mark.certifies(145)
def test_a_revision_that_brings_another_handler_ends_the_wait() -> None:
    def file(function: str) -> str:
        return text(DEV, head=f"{HEAD}handler: {{python: '{__name__}:{function}'}}\n")

    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await fleet.owned("dev")
        await one.one("apply", text=file("away"))
        for n in range(3):
            await one.node.send("dev", f"task {n}")
        await asyncio.sleep(60)
        assert (await one.ask("why", handle="dev"))[0]["code"] == "provider"
        await one.one("apply", text=file("well"))
        await asyncio.sleep(5)
        ended = await one.recorded(types.AGENT_TURN_COMPLETED)
        answers = [each.value("answer", str, "") for each in ended]
        assert [a for a in answers if a] == [f"worked task {n}" for n in range(3)]

    on_a_fleet(test, "n1", handler=None)
