"""Requests that wait for their answers, by the token that an answer comes under."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from crewlet.broker.route import Message


class Question:
    """A request that waits for its answer; `sent` is what went out for it."""

    __slots__ = ("answer", "sent")

    def __init__(self, sent: bytes) -> None:
        self.answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.sent = sent


class Asked:
    """All of one connection."""

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}

    def new(self, token: str, sent: bytes) -> Question:
        self._questions[token] = question = Question(sent)
        return question

    def forget(self, token: str) -> None:
        del self._questions[token]

    def answered(self, message: Message) -> None:
        """What came on an inbox that ends in a token."""
        question = self._questions.get(message.subject.rpartition(".")[2])
        if question is not None and not question.answer.done():
            question.answer.set_result(message)

    def fail(self, error: Exception, queued: Iterable[bytes] = ()) -> None:
        """Nothing of what was sent will be answered any more; what is still `queued` may be."""
        spared = {id(data) for data in queued}
        for question in list(self._questions.values()):
            if not question.answer.done() and id(question.sent) not in spared:
                question.answer.set_exception(error)
