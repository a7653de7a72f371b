"""Questions of the twin: every server sees every one, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from actors.ports import TooLarge, Unavailable
from crewlet import topics
from crewlet.broker.desk import Answers, Desk
from crewlet.broker.port import Answer
from crewlet.events.envelope import MAX_EVENT_BYTES


class MemoryServed:
    """One subscription of `serve`."""

    def __init__(self, questions: MemoryQuestions, desk: Desk) -> None:
        self.desk = desk
        self._questions = questions

    async def close(self) -> None:
        """No question is taken from now on; returns when those under way are answered."""
        self._questions.forget(self)
        await self.desk.close()

    def end(self) -> None:
        """The node is gone: what is under way is cut."""
        self._questions.forget(self)
        self.desk.end()


class MemoryQuestions:
    """All who serve, in the order in which they began, and all who wait for answers."""

    def __init__(self) -> None:
        self._served: list[MemoryServed] = []
        self._asking: dict[asyncio.Future[None], None] = {}

    def serve(self, subject: str, answer: Answer) -> MemoryServed:
        served = MemoryServed(self, Desk(_checked(subject), answer))
        self._served.append(served)
        return served

    def forget(self, served: MemoryServed) -> None:
        self._served = [one for one in self._served if one is not served]

    async def ask(
        self, subject: str, body: bytes, wanted: int, within_s: float, gone: asyncio.Future[None]
    ) -> Sequence[bytes]:
        """What the port says; `gone` is done when the asker's client stops.

        It waits out its time where fewer answer than are wanted, as on a network: nobody
        there knows how many are still to come.
        """
        name = _checked(subject)
        _measured(body)
        desks = [one.desk for one in self._served if one.desk.subject == name]
        if wanted < 1 or not desks:
            return []
        answers, cut = Answers(wanted), asyncio.get_running_loop().create_future()
        self._asking[cut] = None
        try:
            for desk in desks:
                desk.put(body, lambda answer: answers.take(_measured(answer)))
            if not await answers.wait(within_s, cut, gone) and cut.done():
                raise Unavailable("the broker went away before the question was answered")
        finally:
            self._asking.pop(cut, None)
        return answers.came

    def cut(self) -> None:
        """The broker goes away: who waits for answers waits in vain."""
        for asking in self._asking:
            if not asking.done():
                asking.set_result(None)


def _measured(body: bytes) -> bytes:
    if len(body) > MAX_EVENT_BYTES:
        raise TooLarge(f"{len(body)} bytes: at most {MAX_EVENT_BYTES} are taken")
    return bytes(body)


def _checked(subject: str) -> str:
    if not topics.is_subject(subject):
        raise ValueError(f"{subject!r} is no subject to ask on")
    return subject
