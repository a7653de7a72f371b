"""Cases: the broker is gone, and comes back. Errors tell "try again" from "stopped"."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from actors.ports import NotLive, Unavailable
from crewlet.errors import PublishUnknown
from crewlet.queue import EventQueue
from crewlet.testing.conformance.harness import SOON_S, now
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader
from crewlet.testing.conformance.queue.verbs import (
    Verb,
    all_raise,
    all_verbs,
    broker_verbs,
    local_verbs,
    publish_verb,
)
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


async def _all_raise_at_once(verbs: Mapping[str, Verb], kind: type[BaseException]) -> None:
    """All verbs beside one another: a broker that is gone costs each its own deadline."""
    await asyncio.gather(*(all_raise({name: verb}, kind) for name, verb in verbs.items()))


async def _back(queue: EventQueue, pattern: str) -> None:
    """This client has found back to the broker."""
    deadline = now() + SOON_S
    while True:
        try:
            await queue.list(pattern)
            return
        except Unavailable:
            assert now() < deadline, "the broker is up, and its client does not find back"


@CASES.case(50, needs="outage")
async def broker_verbs_say_that_the_broker_is_gone(bench: Bench) -> None:
    """Each of them, and none has an effect that shows when it is back; then all work again."""
    desk = await bench.desk()
    verbs = broker_verbs(desk.queue, *desk.pair)
    await bench.harness.down()
    await _all_raise_at_once(verbs, Unavailable)
    await bench.harness.up()
    await _back(desk.queue, desk.topic)
    listed = [state.mailbox for state in await desk.queue.list(desk.topic)]
    assert listed == [desk.mailbox]
    for verb in broker_verbs(desk.queue, *desk.pair).values():
        await verb()


@CASES.case(48, 50, needs="outage")
async def a_publish_that_nobody_answers_is_unknown(bench: Bench) -> None:
    """Neither failed nor done: repeated under its id it is stored once, and told once."""
    desk = await bench.desk()
    heard: list[str] = []
    desk.queue.add_listener(lambda topic, said: heard.append(said.id))
    verb = publish_verb(desk.queue, desk.topic, "a")["publish"]
    await bench.harness.down()
    async with raises(PublishUnknown):
        await verb()
    assert heard == []
    await bench.harness.up()
    while True:
        try:
            await verb()
            break
        except PublishUnknown:
            continue
    assert len(heard) == 1
    reader = await desk.subscribe()
    await desk.flows(reader)
    assert reader.names == ["a", "control"]


@CASES.case(48, needs="outage")
async def a_publish_outlasts_a_short_outage(bench: Bench) -> None:
    """It is retried until it is known."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await bench.harness.down()
    sending = asyncio.create_task(desk.send("a"))
    await bench.silence()
    assert not sending.done()
    await bench.harness.up()
    await sending
    await reader.until("a")
    await desk.emptied()
    assert reader.names == ["a"]


@CASES.case(50, needs="outage")
async def local_verbs_answer_without_the_broker(bench: Bench) -> None:
    """With what they know, and soon; what they did holds when it is back."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    await bench.harness.down()
    wanted = {
        "hold": True,
        "lift": True,
        "quiesce": True,
        "unquiesce": True,
        "detach": True,
        "pause_delivery": None,
    }
    for name, verb in local_verbs(desk.queue, *desk.pair).items():
        began = now()
        assert await verb() is wanted[name], name
        assert now() - began < SOON_S / 2, f"{name} waited for the broker"
    assert await desk.queue.wait_for_handlers(0.0) == 0
    await bench.harness.up()
    await _back(desk.queue, desk.topic)
    await desk.queue.stop()
    heir = await desk.peer()
    await heir.flows(await heir.subscribe(), "heir")
    assert reader.names == ["control"]


@CASES.case(50, 73, needs="outage")
async def a_question_is_refused_all_raise_at_once(bench: Bench) -> None:
    """Nobody could answer: it does not sit out its deadline."""
    desk = await bench.desk()
    await bench.harness.down()
    began = now()
    async with raises(Unavailable):
        await desk.queue.ask(bench.name(), b"?", within_s=SOON_S)
    assert now() - began < SOON_S / 2


@CASES.case(50, 69, needs="outage")
async def delete_still_detaches(bench: Bench) -> None:
    """It says that the mailbox was not reached, and this client's part is over."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    await bench.harness.down()
    async with raises(Unavailable):
        await desk.queue.delete(*desk.pair)
    assert await desk.queue.detach(*desk.pair) is False
    assert await desk.queue.quiesce(*desk.pair) is False
    await bench.harness.up()
    await _back(desk.queue, desk.topic)
    assert await desk.state() is not None
    await desk.send("a")
    await bench.silence()
    assert reader.names == ["control"]
    assert await desk.queue.delete(*desk.pair) is True


@CASES.case(50, 71, needs="outage")
async def stopped_during_an_outage_is_not_live(bench: Bench) -> None:
    """Stopping needs no broker; afterwards every verb says stopped, and never try again."""
    desk = await bench.desk()
    await desk.subscribe()
    idle = await bench.queue(started=False)
    await bench.harness.down()
    began = now()
    await desk.queue.stop()
    assert now() - began < SOON_S
    for queue in (desk.queue, idle):
        await all_raise(all_verbs(queue, *desk.pair), NotLive)
    async with raises(Unavailable):
        await idle.start()
    await all_raise(all_verbs(idle, *desk.pair), NotLive)
    await bench.harness.up()
    await idle.start()
    await desk.queue.start()
    await desk.flows(await desk.subscribe())


@CASES.case(35, 67, needs="outage")
async def an_outcome_of_an_outage_is_not_lost(bench: Bench) -> None:
    """A handler that ends meanwhile has ended: its message does not come again."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a")
    await bench.harness.down()
    reader.release("a")
    await reader.until_ended(1)
    await bench.silence()
    await bench.harness.up()
    await _back(desk.queue, desk.topic)
    await desk.emptied()
    await desk.flows(reader)
    assert reader.names == ["a", "control"]


@CASES.case(50, 67, needs="outage")
async def detach_answers_while_an_outcome_waits_for_the_broker(bench: Bench) -> None:
    """What is still to be said is said when the broker is back, without an attachment."""
    desk = await bench.desk()
    for name in "ab":
        await desk.send(name, key=name)
    reader = Reader()
    reader.hold("a")
    await desk.subscribe_batch(reader)
    await reader.until("a")
    await bench.harness.down()
    await desk.queue.hold(*desk.pair, "run")
    reader.release("a")
    await reader.until_ended(1)
    began = now()
    assert await desk.queue.detach(*desk.pair) is True
    assert now() - began < SOON_S / 2
    await bench.harness.up()
    await _back(desk.queue, desk.topic)
    peer = await desk.peer()
    heir = await peer.subscribe()
    await heir.until("b")
    await peer.emptied()
    assert (reader.names, heir.names) == (["a"], ["b"])


@CASES.case(34, 50, needs="outage")
async def readers_go_on_after_an_outage(bench: Bench) -> None:
    """Nobody subscribes anew: mailboxes, streams and questions find back by themselves."""
    desk = await bench.desk()
    other = await desk.peer()
    name, reader, heard = bench.name(), await desk.subscribe(), asyncio.Event()
    await desk.queue.subscribe_stream(desk.topic, lambda topic, said: heard.set())

    async def answer(question: bytes) -> bytes:
        return question

    await desk.queue.serve(name, answer)
    await desk.flows(reader, "before")
    heard.clear()
    await bench.harness.down()
    await bench.silence()
    await bench.harness.up()
    for queue in (desk.queue, other.queue):
        await _back(queue, desk.topic)
    await other.send("a", "b")
    await reader.until("a", "b")
    async with asyncio.timeout(SOON_S):
        await heard.wait()
    assert list(await other.queue.ask(name, b"?", within_s=SOON_S)) == [b"?"]
    assert reader.names == ["before", "a", "b"]


@CASES.case(42, needs="outage")
async def an_outage_gives_nobody_s_mail_to_a_peer(bench: Bench) -> None:
    """What a member of the group holds stays its own, whoever finds back first."""
    one = await bench.desk()
    two = await one.peer()
    first, second = Reader(), Reader()
    first.hold("a")
    await one.subscribe(first)
    await one.send("a")
    await first.until("a")
    await two.subscribe(second)
    await bench.silence()
    await bench.harness.down()
    await bench.silence()
    await bench.harness.up()
    for queue in (one.queue, two.queue):
        await _back(queue, one.topic)
    await two.flows(second)
    await bench.silence()
    assert second.names == ["control"]
    first.release("a")
    await one.emptied()
    assert (first.names, first.headrooms("a")) == (["a"], [24])
