"""Cases: a question to everybody who serves it - and nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from crewlet.events import Event
from crewlet.testing.conformance.harness import SOON_S, now
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Table

CASES: Final = Table()


def _says(text: str) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(question: bytes) -> bytes:
        return text.encode() + question

    return answer


@CASES.case(73)
async def a_question_reaches_everybody_who_serves_it(bench: Bench) -> None:
    """Every server of every node answers, the asker's own among them; others are not asked."""
    one, two, name = await bench.queue(), await bench.queue(), bench.name()
    await one.serve(name, _says("a"))
    await two.serve(name, _says("b"))
    await two.serve(f"{name}-other", _says("c"))
    for asker in (one, two):
        answers = await asker.ask(name, b"?", wanted=2, within_s=SOON_S)
        assert sorted(answers) == [b"a?", b"b?"]


@CASES.case(73)
async def fewer_answers_than_wanted_are_no_error(bench: Bench) -> None:
    """Those that came within the deadline; none, where nobody serves."""
    queue, name = await bench.queue(), bench.name()
    assert list(await queue.ask(name, b"?", wanted=3, within_s=0.2)) == []
    await queue.serve(name, _says("a"))
    began = now()
    assert list(await queue.ask(name, b"?", wanted=3, within_s=0.4)) == [b"a?"]
    assert 0.35 <= now() - began <= 0.5 + bench.slack_s


@CASES.case(73)
async def a_slow_answer_blocks_nobody(bench: Bench) -> None:
    """Not another server's, and not its own server's next question."""
    one, two, name = await bench.queue(), await bench.queue(), bench.name()
    stands = asyncio.Event()

    async def slow(question: bytes) -> bytes:
        if question == b"slow":
            await stands.wait()
        return b"slow:" + question

    await one.serve(name, slow)
    first = asyncio.create_task(two.ask(name, b"slow", within_s=SOON_S))
    await bench.silence()
    assert not first.done()
    assert list(await two.ask(name, b"next", within_s=SOON_S)) == [b"slow:next"]
    await two.serve(name, _says("quick"))
    assert list(await one.ask(name, b"slow", within_s=SOON_S)) == [b"quickslow"]
    stands.set()
    assert list(await first) == [b"slow:slow"]


@CASES.case(73)
async def an_answer_that_fails_is_no_answer(bench: Bench) -> None:
    """The asker hears the others; the server serves on."""
    queue, name = await bench.queue(), bench.name()

    async def fail(question: bytes) -> bytes:
        if question == b"fail":
            raise RuntimeError("planted")
        return b"well"

    await queue.serve(name, fail)
    await queue.serve(name, _says("a"))
    assert list(await queue.ask(name, b"fail", wanted=2, within_s=0.4)) == [b"afail"]
    assert len(await queue.ask(name, b"?", wanted=2, within_s=SOON_S)) == 2


@CASES.case(63, 73)
async def a_question_leaves_nothing_behind(bench: Bench) -> None:
    """No mailbox, no listener told, nothing for who serves later."""
    queue, name = await bench.queue(), bench.name()
    told: list[Event] = []
    queue.add_listener(lambda topic, said: told.append(said))
    before = list(await queue.list(">"))
    assert list(await queue.ask(name, b"early", within_s=0.2)) == []
    asked: list[bytes] = []

    async def note(question: bytes) -> bytes:
        asked.append(question)
        return question

    await queue.serve(name, note)
    assert list(await queue.ask(name, b"?", within_s=SOON_S)) == [b"?"]
    names = {state.mailbox for state in await queue.list(">")}
    assert names == {state.mailbox for state in before}
    assert (asked, told) == ([b"?"], [])


@CASES.case(73)
async def closing_waits_for_answers_under_way(bench: Bench) -> None:
    """They are heard; what is asked afterwards is not answered."""
    one, two, name = await bench.queue(), await bench.queue(), bench.name()
    begun, stands = asyncio.Event(), asyncio.Event()

    async def slow(question: bytes) -> bytes:
        begun.set()
        await stands.wait()
        return question

    serving = await one.serve(name, slow)
    asking = asyncio.create_task(two.ask(name, b"?", within_s=SOON_S))
    async with asyncio.timeout(SOON_S):
        await begun.wait()
    closing = asyncio.create_task(serving.close())
    await bench.silence()
    assert not closing.done()
    stands.set()
    await closing
    assert list(await asking) == [b"?"]
    assert list(await two.ask(name, b"?", within_s=0.2)) == []
