"""Cases: a question reaches everybody who serves it, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from actors.delivery import Mailbox
from actors.ports import NotLive, TooLarge
from crewlet import topics
from crewlet.broker.port import CompanyBroker
from crewlet.events.envelope import MAX_EVENT_BYTES
from crewlet.testing.conformance.broadcasts import Heard
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import SOON_S, Harness, now, pass_time, send
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()

MANY: Final = 64
"""Answers of one subscription that are worked at the same time (crewlet.broker.port)."""

Answer = Callable[[bytes], Awaitable[bytes]]


def _says(text: str) -> Answer:
    async def answer(question: bytes) -> bytes:
        return text.encode() + b":" + question

    return answer


async def _fail(_: bytes) -> bytes:
    raise RuntimeError("planted")


class Slow:
    """An answer that is under way until it is let go; `began` counts those that were begun."""

    def __init__(self) -> None:
        self.began = 0
        self.let_go = asyncio.Event()
        self._changed = asyncio.Event()

    async def answer(self, question: bytes) -> bytes:
        self.began += 1
        self._changed.set()
        await self.let_go.wait()
        return b"slow:" + question

    async def until(self, number: int) -> None:
        async with asyncio.timeout(SOON_S):
            while self.began < number:
                self._changed.clear()
                await self._changed.wait()


async def _ask(
    client: CompanyBroker, subject: str, *, wanted: int = 1, within_s: float = SOON_S
) -> list[str]:
    answers = await client.ask(subject, b"q", wanted=wanted, within_s=within_s)
    return [answer.decode() for answer in answers]


@CASES.case(73)
async def every_server_answers_across_clients(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject = topics.question(harness.name())
    await one.serve(subject, _says("a"))
    await two.serve(subject, _says("b"))
    await two.serve(subject, _says("c"))
    for client in (one, two):
        assert sorted(await _ask(client, subject, wanted=3)) == ["a:q", "b:q", "c:q"]


@CASES.case(73)
async def an_asker_has_as_many_answers_as_it_wants_and_at_once(harness: Harness) -> None:
    client, subject = await harness.client(), topics.question(harness.name())
    for text in "abc":
        await client.serve(subject, _says(text))
    began = now()
    assert len(await _ask(client, subject, wanted=2)) == 2
    assert len(await _ask(client, subject)) == 1
    assert now() - began < SOON_S / 2, "it waited for answers that it did not want"
    assert await _ask(client, subject, wanted=0) == []


@CASES.case(73)
async def fewer_answers_than_wanted_are_no_error(harness: Harness) -> None:
    client, subject = await harness.client(), topics.question(harness.name())
    await client.serve(subject, _says("a"))
    began = now()
    assert await _ask(client, subject, wanted=3, within_s=0.3) == ["a:q"]
    assert 0.29 <= now() - began <= 0.3 + max(harness.slack_s, 0.01)


@CASES.case(73)
async def nobody_serving_is_an_empty_answer_at_once(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    await client.serve(topics.question(f"{name}.other"), _says("other"))
    began = now()
    assert await _ask(client, topics.question(name), wanted=2) == []
    assert now() - began < SOON_S / 2
    assert await _ask(client, topics.question(f"{name}.other")) == ["other:q"]


@CASES.case(73)
async def two_who_answer_alike_are_two(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject = topics.question(harness.name())
    for client in (one, two):
        await client.serve(subject, _says("same"))
    assert await _ask(one, subject, wanted=2) == ["same:q", "same:q"]


@CASES.case(73)
async def a_slow_server_blocks_nobody(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject, slow = topics.question(harness.name()), Slow()
    await one.serve(subject, slow.answer)
    await one.serve(subject, _says("quick"))
    for asker in (one, two, two):
        assert await _ask(asker, subject) == ["quick:q"]
    await slow.until(3)
    slow.let_go.set()
    assert sorted(await _ask(two, subject, wanted=2)) == ["quick:q", "slow:q"]


@CASES.case(73)
async def a_slow_question_delays_no_other_of_its_server(harness: Harness) -> None:
    client, subject, slow = await harness.client(), topics.question(harness.name()), Slow()

    async def answer(question: bytes) -> bytes:
        return await (slow.answer(question) if question == b"slow" else _says("a")(question))

    await client.serve(subject, answer)
    waiting = asyncio.create_task(client.ask(subject, b"slow", wanted=1, within_s=SOON_S))
    await slow.until(1)
    assert await _ask(client, subject) == ["a:q"]
    assert not waiting.done()
    slow.let_go.set()
    assert await waiting == [b"slow:slow"]


@CASES.case(73)
async def sixty_four_answers_at_a_time_and_the_rest_waits(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject, slow = topics.question(harness.name()), Slow()
    await one.serve(subject, slow.answer)
    asking = [asyncio.create_task(_ask(two, subject)) for _ in range(MANY + 6)]
    await slow.until(MANY)
    await pass_time(harness.quiet_s)
    assert slow.began == MANY
    slow.let_go.set()
    assert [await one for one in asking] == [["slow:q"]] * (MANY + 6)


@CASES.case(73)
async def a_failing_answer_is_isolated(harness: Harness) -> None:
    client, subject = await harness.client(), topics.question(harness.name())
    await client.serve(subject, _fail)
    await client.serve(subject, _says("a"))
    for _ in range(2):
        assert await _ask(client, subject, wanted=2, within_s=0.3) == ["a:q"]


@CASES.case(73)
async def an_answer_that_is_too_large_is_none_and_hurts_nobody(harness: Harness) -> None:
    client, subject = await harness.client(), topics.question(harness.name())

    async def huge(_: bytes) -> bytes:
        return b"x" * (MAX_EVENT_BYTES + 1)

    await client.serve(subject, huge)
    await client.serve(subject, _says("a"))
    assert await _ask(client, subject, wanted=2, within_s=0.3) == ["a:q"]
    async with raises(TooLarge):
        await client.ask(subject, b"x" * (MAX_EVENT_BYTES + 1), wanted=1, within_s=SOON_S)
    assert client.connected
    assert await _ask(client, subject) == ["a:q"]


@CASES.case(73)
async def a_closed_server_is_no_longer_asked(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject = topics.question(harness.name())
    calls: list[bytes] = []

    async def count(question: bytes) -> bytes:
        calls.append(question)
        return b"a"

    serving = await one.serve(subject, count)
    assert await _ask(two, subject) == ["a"]
    await serving.close()
    await serving.close()
    assert await _ask(one, subject) == []
    await two.serve(subject, _says("b"))
    assert await _ask(two, subject) == ["b:q"]
    assert len(calls) == 1


@CASES.case(73)
async def closing_waits_for_the_answers_under_way(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject, slow = topics.question(harness.name()), Slow()
    serving = await one.serve(subject, slow.answer)
    asking = asyncio.create_task(_ask(two, subject))
    await slow.until(1)
    closing = asyncio.create_task(serving.close())
    await pass_time(harness.quiet_s)
    assert not closing.done()
    slow.let_go.set()
    await closing
    assert await asking == ["slow:q"]
    assert await _ask(two, subject) == []


@CASES.case(50, 73)
async def stopping_cuts_answers_and_ends_askers(harness: Harness) -> None:
    one, two = await harness.client(), await harness.client()
    subject, slow = topics.question(harness.name()), Slow()
    await one.serve(subject, slow.answer)
    asking = asyncio.create_task(_ask(two, subject))
    await slow.until(1)
    began = now()
    await two.stop()
    async with raises(NotLive):
        await asking
    await one.stop()
    assert now() - began < SOON_S / 2
    async with raises(NotLive):
        await one.ask(subject, b"q", wanted=1, within_s=SOON_S)
    async with raises(NotLive):
        await one.serve(subject, slow.answer)
    control = await harness.client()
    assert await _ask(control, subject) == []


@CASES.case(73)
async def nothing_of_a_question_is_stored(harness: Harness) -> None:
    client, name, heard = await harness.client(), harness.name(), Heard()
    subject = topics.question(name)
    before = await client.list(">")
    await client.subscribe(topics.EVENTS, heard.listen)
    await client.serve(subject, _says("a"))
    assert await _ask(client, subject) == ["a:q"]
    assert await client.list(">") == before
    assert await client.recent(subject, 10) == []
    await send(client, topics.event(name), "control")
    await heard.until(topics.event(name))
    assert [topic for topic, _ in heard.messages] == [topics.event(name)]
    assert len(await client.recent(topics.event(name), 10)) == 1


@CASES.case(73)
async def a_mailbox_of_the_same_name_neither_sees_nor_answers(harness: Harness) -> None:
    """A topic may be spelled like a question; its mail is its own."""
    client, subject = await harness.client(), topics.question(harness.name())
    mailbox = Mailbox(subject, "g")
    await client.ensure(mailbox)
    attachment = await client.attach(mailbox, epoch=1)
    assert await _ask(client, subject) == []
    await client.serve(subject, _says("a"))
    assert await _ask(client, subject, wanted=2, within_s=0.3) == ["a:q"]
    assert await client.fetch(attachment, 5, harness.quiet_s) == []
    await send(client, subject, "mail")
    assert [one.body for one in await client.fetch(attachment, 5, SOON_S)] == [b"mail"]


@CASES.case(73)
async def what_is_no_subject_is_refused(harness: Harness) -> None:
    client = await harness.client()
    for bad in ("", "a..b", "crewlet.ask.*", "crewlet.ask.>", "a b"):
        async with raises(ValueError):
            await client.serve(bad, _says("a"))
        async with raises(ValueError):
            await client.ask(bad, b"q", wanted=1, within_s=SOON_S)
    subject = topics.question(harness.name())
    await client.serve(subject, _says("a"))
    assert await _ask(client, subject) == ["a:q"]
