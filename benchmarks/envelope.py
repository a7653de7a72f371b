"""Events as a producer makes them, publishers with listeners, and what they cost alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from actors.system import SystemClock
from benchmarks.pull import events
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.port import CompanyBroker
from crewlet.events import Event, decode, encode
from crewlet.queue import Publisher

LISTENERS: Final = 10


def maker(body: bytes) -> Callable[[], Event]:
    """Makes events, each with an id of its own, as long as `body`."""
    like = decode(body)
    fields = {"text": like.value("text", str, "")}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return lambda: Event.new(like.type, at=at, trace=like.trace, payload=like.payload, body=fields)


def publisher(broker: CompanyBroker, listeners: int) -> Publisher:
    made = Publisher(broker, node_id="node", clock=SystemClock())
    for _ in range(listeners):
        made.add_listener(_heard)
    return made


def _heard(topic: str, event: Event) -> None:
    """What a listener does that looks for something else."""
    _ = event.type == "something else"


def steps() -> Mapping[str, Callable[[], object]]:
    """What is done to an event of 500 bytes, step by step, without a broker."""
    body = events(1, 1)[0]
    event, told = decode(body), publisher(MemoryBroker().client("node"), LISTENERS)
    return {
        "an event made": maker(body),
        "an event stamped and encoded": lambda: encode(event.stamped("node")),
        "an event decoded": lambda: decode(body),
        f"an event told to {LISTENERS} listeners": lambda: told._tell("topic", event),
    }
