"""Every verb of a queue by its name, for the cases that say them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from crewlet.queue import EventQueue
from crewlet.testing.conformance.queue.reader import Reader, event, key_of

Verb: TypeAlias = Callable[[], Awaitable[object]]


def broker_verbs(queue: EventQueue, topic: str, group: str) -> Mapping[str, Verb]:
    """Those that ask the broker, but for `publish`, which has an error of its own."""

    async def answer(question: bytes) -> bytes:
        return question

    return {
        "ensure": lambda: queue.ensure(topic, group),
        "list": lambda: queue.list(topic),
        "subscribe": lambda: queue.subscribe(topic, f"{group}-1", Reader()),
        "subscribe_batch": lambda: queue.subscribe_batch(topic, f"{group}-2", Reader(), key=key_of),
        "subscribe_stream": lambda: queue.subscribe_stream(topic, lambda at, heard: None),
        "ask": lambda: queue.ask(group, b"?", within_s=0.2),
        "serve": lambda: queue.serve(group, answer),
        "delete": lambda: queue.delete(topic, f"{group}-1"),
        "delete of nothing": lambda: queue.delete(topic, f"{group}-none"),
    }


def publish_verb(queue: EventQueue, topic: str, name: str) -> Mapping[str, Verb]:
    said = event(topic, name)
    return {"publish": lambda: queue.publish(topic, said, within_s=0.3)}


def local_verbs(queue: EventQueue, topic: str, group: str) -> Mapping[str, Verb]:
    """Those that need no broker, by rising destructiveness."""
    return {
        "hold": lambda: queue.hold(topic, group, "run"),
        "lift": lambda: queue.lift(topic, group, "run"),
        "quiesce": lambda: queue.quiesce(topic, group),
        "unquiesce": lambda: queue.unquiesce(topic, group),
        "detach": lambda: queue.detach(topic, group),
        "pause_delivery": queue.pause_delivery,
    }


def all_verbs(queue: EventQueue, topic: str, group: str) -> Mapping[str, Verb]:
    """All that a queue which is not live refuses."""
    return {
        **publish_verb(queue, topic, "verb"),
        **broker_verbs(queue, topic, group),
        **local_verbs(queue, topic, group),
    }


async def all_raise(verbs: Mapping[str, Verb], kind: type[BaseException]) -> None:
    """Each verb raises an error of this kind, or the case fails and says what it did instead."""
    wrong = []
    for name, verb in verbs.items():
        try:
            wrong.append(f"{name} answered {await verb()!r}")
        except Exception as error:
            if not isinstance(error, kind):
                wrong.append(f"{name} raised {error!r}")
    assert not wrong, "; ".join(wrong)
