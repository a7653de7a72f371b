"""JetStream's request API: JSON in, JSON out, one deadline over all tries."""

from __future__ import annotations

import asyncio
import base64
import random
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from actors.ports import Unavailable
from crewlet.broker.route import read_headers
from crewlet.broker.wire import NoResponders, Wire

WAIT_S: Final = 5.0
"""The deadline of a call: longer than a step-down of a leader (0.5 s), shorter than a lease."""

AGAIN_S: Final = (0.02, 0.08)

WRONG_SEQUENCE: Final = 10071
MEETS_ANOTHER: Final = 10164
"""A conditional write while another one of its subject is being replicated: neither yes nor no."""
MAILBOX_MISSING: Final = 10014
MAILBOX_EXISTS: Final = 10148
STREAM_MISSING: Final = 10059
STREAM_EXISTS: Final = 10058
MESSAGE_MISSING: Final = 10037
NOT_YET: Final = (10005, 10008, 10009, 10023, 10074)
"""A cluster that has not enough members for what was asked: they may be on their way."""

_NO_LEADER: Final = (10008, 10023, 10076)
"""No leader yet, or a resource that is not there yet: a server that has just come back."""


class ApiError(Exception):
    """The broker's no. `code` is JetStream's err_code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class Stored(msgspec.Struct, frozen=True):
    """A message as a stream keeps it. `at` is UTC."""

    subject: str
    sequence: int
    at: datetime
    body: bytes
    headers: Mapping[str, str]


class Api:
    """Calls over one connection. Each raises Unavailable or NotLive, and ApiError for a no."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def wire(self) -> Wire:
        """The connection that the calls go over."""
        return self._wire

    async def call(
        self, verb: str, body: Mapping[str, Any] | None = None, wait_s: float = WAIT_S
    ) -> dict[str, Any]:
        """The answer to `$JS.API.<verb>`, whatever pages it has left out."""
        data = msgspec.json.encode(body) if body else b""
        return await self.ask(f"$JS.API.{verb}", data, wait_s=wait_s)

    async def ask(
        self,
        subject: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        wait_s: float = WAIT_S,
    ) -> dict[str, Any]:
        """The decoded answer. What certainly did not happen (nobody serves it yet, no leader)
        is tried again until the deadline."""
        deadline = time.monotonic() + wait_s
        while True:
            left_s = max(0.001, deadline - time.monotonic())
            try:
                answer = await self._wire.request(subject, body, wait_s=left_s, headers=headers)
                return _decoded(answer.data)
            except (NoResponders, ApiError) as error:
                if isinstance(error, ApiError) and error.code not in _NO_LEADER:
                    raise
                pause_s = random.uniform(*AGAIN_S)  # noqa: S311
                if time.monotonic() + pause_s >= deadline:
                    if isinstance(error, NoResponders):
                        raise
                    raise Unavailable(f"the broker does not serve this now: {error}") from error
                await asyncio.sleep(pause_s)

    async def pages(
        self, verb: str, field: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Any]:
        """Every item of a paged answer; the server decides how many are on a page."""
        offset = 0
        while True:
            page = await self.call(verb, {**(body or {}), "offset": offset})
            items = page.get(field) or []
            for item in items:
                yield item
            offset += len(items)
            if not items or offset >= page.get("total", 0):
                return

    async def message(
        self, stream: str, question: Mapping[str, Any], wait_s: float = WAIT_S
    ) -> Stored | None:
        """One message from the stream's leader: `{"seq": 7}`, `{"last_by_subj": "a.b"}`,
        `{"seq": 7, "next_by_subj": "a.*"}`. None where there is none."""
        try:
            answer = await self.call(f"STREAM.MSG.GET.{stream}", question, wait_s)
        except ApiError as error:
            if error.code == MESSAGE_MISSING:
                return None
            raise
        return _stored(answer["message"])


def _decoded(data: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(data)
    error = answer.get("error")
    if error is not None:
        raise ApiError(error.get("err_code", 0), error.get("description", "no description"))
    return answer


def _stored(message: Mapping[str, Any]) -> Stored:
    return Stored(
        subject=message["subject"],
        sequence=message["seq"],
        at=timestamp(message["time"]),
        body=base64.b64decode(message.get("data", "")),
        headers=read_headers(base64.b64decode(message.get("hdrs", ""))),
    )


def timestamp(text: str) -> datetime:
    """RFC 3339 with up to nanoseconds, as Go writes it."""
    head, _, fraction = text.removesuffix("Z").partition(".")
    micros = int((fraction + "000000")[:6])
    return datetime.fromisoformat(head).replace(microsecond=micros, tzinfo=UTC)
