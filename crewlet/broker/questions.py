"""Questions over plain NATS: no stream, no record, no consumer; who listens now may answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from actors.ports import Unavailable
from crewlet import topics
from crewlet.broker.desk import Answers, Desk
from crewlet.broker.port import Answer
from crewlet.broker.route import Message, Route, status
from crewlet.broker.wire import Wire

SERVE_S: Final = 5.0
CUT_S: Final = 0.5

ROOT: Final = "_ASK"
"""No namespace has capital letters: no stream, of ours or made on demand, keeps a question."""


class Questions:
    """All that this client serves and asks."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._served: set[Served] = set()

    async def serve(self, subject: str, answer: Answer) -> Served:
        """A subscription that outlives reconnects, and is at the server when this returns."""
        served = Served(self, Desk(subject, answer))
        served.route = self._wire.route(_wire_subject(subject), served.heard)
        if not await self._wire.barrier(SERVE_S):
            self._wire.drop(served.route)
            raise Unavailable("the broker did not take the subscription; try again")
        self._served.add(served)
        return served

    async def ask(
        self, subject: str, body: bytes, *, wanted: int, within_s: float
    ) -> Sequence[bytes]:
        """What the port says. A connection that breaks ends it: no answer would find us."""
        name = _wire_subject(subject)
        self._wire.check_live()
        if not self._wire.connected:
            raise Unavailable("the broker is away: nobody can be asked")
        if wanted < 1:
            return []
        answers, lost = Answers(wanted), self._wire.lost()

        def heard(message: Message) -> None:
            if status(message) == "503":
                answers.end()
            else:
                answers.take(message.data)

        inbox = self._wire.new_inbox()
        route = self._wire.route(inbox, heard)
        try:
            self._wire.send(name, body, inbox)
            came = await answers.wait(within_s, lost)
        finally:
            self._wire.drop(route)
        self._wire.check_live()
        if not came:
            raise Unavailable("the connection broke before the question was answered")
        return answers.came

    async def end(self) -> None:
        """The client leaves: what is under way is cut, in bounded time."""
        served, self._served = self._served, set()
        closing = [asyncio.create_task(one.end()) for one in served]
        if closing:
            await asyncio.wait(closing, timeout=CUT_S)

    def reply(self, inbox: str, answer: bytes) -> None:
        """An answer never waits for a connection: its asker gave up when ours broke."""
        if not self._wire.connected:
            raise Unavailable("the broker is away")
        self._wire.send(inbox, answer)

    def drop(self, served: Served) -> None:
        self._served.discard(served)
        if served.route is not None:
            self._wire.drop(served.route)


class Served:
    """One subscription of `serve`."""

    def __init__(self, questions: Questions, desk: Desk) -> None:
        self._questions = questions
        self._desk = desk
        self.route: Route | None = None

    def heard(self, message: Message) -> None:
        """Inside the read loop: a question of somebody who waits for an answer."""
        inbox = message.reply
        if inbox:
            self._desk.put(message.data, lambda answer: self._questions.reply(inbox, answer))

    async def close(self) -> None:
        """No question is taken from now on; returns when those under way are answered."""
        self._questions.drop(self)
        await self._desk.close()

    async def end(self) -> None:
        """The same, without patience."""
        self._questions.drop(self)
        self._desk.end()
        await self._desk.close()


def _wire_subject(subject: str) -> str:
    if not topics.is_subject(subject):
        raise ValueError(f"{subject!r} is no subject to ask on")
    return f"{ROOT}.{subject}"
