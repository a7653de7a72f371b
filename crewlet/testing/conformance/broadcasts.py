"""Cases: broadcasts reach every node from now on, and retained messages can be read again."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet import topics
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import SOON_S, Harness, seat, send
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


class Heard:
    """What a subscription was told, in order."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self._changed = asyncio.Event()

    def listen(self, topic: str, body: bytes) -> None:
        self.messages.append((topic, body))
        self._changed.set()

    async def until(self, topic: str, body: str = "") -> None:
        """A message of this topic, and of this body if one is given, was heard."""
        async with asyncio.timeout(SOON_S):
            while not any(t == topic and body.encode() in b for t, b in self.messages):
                self._changed.clear()
                await self._changed.wait()

    def bodies(self, topic: str) -> list[str]:
        return [body.decode() for heard, body in self.messages if heard == topic]


@CASES.case(20)
async def a_subscription_hears_from_now_on_in_order(harness: Harness) -> None:
    client, topic = await harness.client(), topics.event(harness.name())
    await send(client, topic, "before")
    heard = Heard()
    await client.subscribe(topic, heard.listen)
    for body in "abc":
        await send(client, topic, body)
    await heard.until(topic, "c")
    assert heard.bodies(topic) == ["a", "b", "c"]


@CASES.case(20)
async def every_node_hears_it(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    topic = topics.event(harness.name())
    ears = [Heard(), Heard(), Heard()]
    for client, heard in zip((one, two, two), ears, strict=True):
        await client.subscribe(topics.EVENTS, heard.listen)
    await send(one, topic, "a")
    for heard in ears:
        await heard.until(topic)
        assert heard.bodies(topic) == ["a"]


@CASES.case(20)
async def a_pattern_filters(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    mine, other = topics.event(f"{name}.x.end"), topics.event(f"{name}.x")
    deep = topics.event(f"{name}.x.y.end")
    one, rest = Heard(), Heard()
    await client.subscribe(topics.event(f"{name}.y").removesuffix("y") + "*.end", one.listen)
    await client.subscribe(topics.event(f"{name}.y").removesuffix("y") + ">", rest.listen)
    for topic in (other, deep, topics.event(name), mine):
        await send(client, topic, "a")
    await one.until(mine)
    await rest.until(mine)
    assert [topic for topic, _ in one.messages] == [mine]
    assert [topic for topic, _ in rest.messages] == [other, deep, mine]


@CASES.case(20)
async def mail_for_mailboxes_is_heard_too_and_stays_in_them(harness: Harness) -> None:
    box, heard = await seat(harness), Heard()
    await box.client.subscribe(topics.AGENT, heard.listen)
    await box.send("a")
    await heard.until(box.mailbox.topic)
    assert len(await box.take(1)) == 1


@CASES.case(45)
async def a_handler_that_raises_hurts_nobody(harness: Harness) -> None:
    client, topic = await harness.client(), topics.event(harness.name())
    calls: list[bytes] = []

    def fail(_: str, body: bytes) -> None:
        calls.append(body)
        raise RuntimeError("planted")

    heard = Heard()
    await client.subscribe(topic, fail)
    await client.subscribe(topic, heard.listen)
    for body in "ab":
        await send(client, topic, body)
    await heard.until(topic, "b")
    assert heard.bodies(topic) == ["a", "b"]
    await send(client, topic, "c")
    await heard.until(topic, "c")
    assert calls[:2] == [b"a", b"b"]


@CASES.case(20)
async def a_closed_subscription_hears_nothing(harness: Harness) -> None:
    client, topic = await harness.client(), topics.event(harness.name())
    closed, open_ = Heard(), Heard()
    subscription = await client.subscribe(topic, closed.listen)
    await client.subscribe(topic, open_.listen)
    await send(client, topic, "a")
    await closed.until(topic, "a")
    await subscription.close()
    await subscription.close()
    await send(client, topic, "b")
    await open_.until(topic, "b")
    assert closed.bodies(topic) == ["a"]


@CASES.case(20, 23)
async def a_pattern_over_every_namespace_is_refused(harness: Harness) -> None:
    client, heard = await harness.client(), Heard()
    crewlet = topics.EVENTS.split(".", maxsplit=1)[0]
    for pattern in (">", "*", "*.>", f"{crewlet}.>", f"{crewlet}.*", f"{crewlet}.*.inbox"):
        async with raises(ValueError):
            await client.subscribe(pattern, heard.listen)
    topic = topics.event(harness.name())
    await client.subscribe(topics.EVENTS, heard.listen)
    await send(client, topic, "control")
    await heard.until(topic)


@CASES.case(29, 30)
async def recent_are_the_newest_and_the_oldest_of_them_first(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    topic, other = topics.event(f"{name}.a"), topics.event(f"{name}.b")
    pattern = topic.removesuffix("a") + ">"
    assert await client.recent(pattern, 10) == []
    for body in ("1", "2", "3"):
        await send(client, topic, body)
        await send(client, other, body)
    mine = [(topic, b"1"), (topic, b"2"), (topic, b"3")]
    assert list(await client.recent(topic, 10)) == mine
    assert list(await client.recent(topic, 2)) == mine[1:]
    assert list(await client.recent(pattern, 3)) == [(other, b"2"), *mine[2:], (other, b"3")]
    peer = await harness.client()
    assert list(await peer.recent(topic, 10)) == mine


@CASES.case(29)
async def recent_over_a_whole_namespace_ends_with_the_newest(harness: Harness) -> None:
    client, topic = await harness.client(), topics.event(harness.name())
    for body in ("1", "2"):
        await send(client, topic, body)
    newest = list(await client.recent(topics.EVENTS, 2))
    assert newest == [(topic, b"1"), (topic, b"2")]


@CASES.case(29, 30, needs="virtual_time")
async def retained_messages_age(harness: Harness) -> None:
    client = await harness.client()
    event, config = topics.event(harness.name()), topics.CONFIG.removesuffix(">") + "nudge"
    for topic in (event, config):
        await send(client, topic, "a")
    await asyncio.sleep(3599)
    assert len(await client.recent(config, 10)) == 1
    await asyncio.sleep(2)
    assert await client.recent(config, 10) == []
    assert len(await client.recent(event, 10)) == 1
    await asyncio.sleep(30 * 24 * 3600)
    assert await client.recent(event, 10) == []
