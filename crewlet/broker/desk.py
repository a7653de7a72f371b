"""Questions and answers, whatever carries them: how they are worked, and how they are gathered."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

from actors.ports import BrokerError
from crewlet.broker.port import Answer

log = structlog.get_logger(__name__)

Reply = Callable[[bytes], None]
"""Sends one answer on its way; raises a BrokerError where it cannot go."""

AT_A_TIME: Final = 64
"""Answers of one subscription that are worked at the same time."""

MOST_WAITING: Final = 1024
"""Questions that may wait for their turn. Who asks has a deadline and does without the answer:
what waits behind a thousand others would be answered to nobody."""


class Desk:
    """One served subject. Each question is a task of its own, so that a slow one delays no
    other; it runs outside the asker's context, as it does between two machines."""

    def __init__(self, subject: str, answer: Answer) -> None:
        self.subject = subject
        self._answer = answer
        self._waiting: deque[tuple[bytes, Reply]] = deque()
        self._working: set[asyncio.Task[None]] = set()
        self.open = True

    def put(self, question: bytes, reply: Reply) -> None:
        """Answer it now, or when one of those under way has ended."""
        if not self.open:
            return
        if len(self._waiting) >= MOST_WAITING:
            log.warning("broker_question_dropped", subject=self.subject, waiting=MOST_WAITING)
            return
        self._waiting.append((question, reply))
        self._begin()

    async def close(self) -> None:
        """Take no more; returns when those under way have ended. What waits is dropped.
        An answer may close its own desk: it does not wait for itself."""
        self._shut()
        others = self._working - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)

    def end(self) -> None:
        """Take no more, and cut those under way: nobody could be answered any more."""
        self._shut()
        for task in self._working:
            task.cancel()

    def _shut(self) -> None:
        self.open = False
        self._waiting.clear()

    def _begin(self) -> None:
        while self._waiting and len(self._working) < AT_A_TIME:
            work = self._work(*self._waiting.popleft())
            task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
            self._working.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._begin()

    async def _work(self, question: bytes, reply: Reply) -> None:
        try:
            reply(await self._answer(question))
        except BrokerError as error:
            log.warning("broker_answer_unsent", subject=self.subject, error=str(error))
        except Exception:
            log.exception("broker_answer_failed", subject=self.subject)


class Answers:
    """What has come of one question so far."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._came: list[bytes] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, answer: bytes) -> None:
        """One that comes after the last wanted one is nobody's."""
        if not self.over.done():
            self._came.append(answer)
            if len(self._came) >= self._wanted:
                self.end()

    def end(self) -> None:
        """No more will come."""
        if not self.over.done():
            self.over.set_result(None)

    @property
    def came(self) -> list[bytes]:
        return list(self._came)

    async def wait(self, within_s: float, *ends: asyncio.Future[None]) -> bool:
        """Until it is over, or one of `ends` is, or the time is up. False: one of `ends`."""
        over = {self.over, *ends}
        await asyncio.wait(over, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        return self.over.done() or not any(end.done() for end in ends)
