"""Somebody who posts webhooks of GitHub as fast as told, and hears which turns were settled.

Each is an issue of its own that is assigned to one seat: one conversation, one turn. A turn counts
as settled when the record of its end, which its node publishes after the ledger has it, has come
to a plain connection beside the nodes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg

from crewlet import topics
from crewlet.events import catalogue as types
from crewlet.events import decode

ACCEPTED: Final = b"202"
PATH: Final = "/webhooks/github"


class Settled:
    """When each conversation's turn was settled, by the machine's monotonic clock."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self._wanted: frozenset[int] = frozenset()
        self._all = asyncio.Event()

    async def listen(self, client: Client) -> None:
        await client.subscribe(topics.event(types.AGENT_TURN_COMPLETED), cb=self._heard)
        await client.flush()

    async def _heard(self, message: Msg) -> None:
        now = time.monotonic()
        event = decode(message.data)
        assert event.value("outcome", str, "") == "ack", message.data
        number = int(event.value("conversation_key", str, "").rpartition("#")[2])
        self.at.setdefault(number, now)
        if self._wanted and self._wanted <= self.at.keys():
            self._all.set()

    async def wait(self, numbers: Sequence[int], within_s: float) -> list[float]:
        """When those were settled, in their order; TimeoutError if some were not."""
        self._all.clear()
        self._wanted = frozenset(numbers)
        if not self._wanted <= self.at.keys():
            async with asyncio.timeout(within_s):
                await self._all.wait()
        self._wanted = frozenset()
        return [self.at[number] for number in numbers]


class Hooks:
    """Connections that are kept, to each node as many."""

    def __init__(self, secret: str, seats: int) -> None:
        self._secret = secret.encode()
        self._seats = seats
        self._numbers = itertools.count(1)
        self._idle: asyncio.Queue[_Line] = asyncio.Queue()
        self._lines: list[_Line] = []

    async def connect(self, urls: Sequence[str], lines: int) -> None:
        for _, url in zip(range(lines), itertools.cycle(urls)):
            line = _Line(url)
            await line.connect()
            self._lines.append(line)
            self._idle.put_nowait(line)

    async def close(self) -> None:
        for line in self._lines:
            line.close()

    def prepare(self, count: int) -> dict[int, bytes]:
        """The requests of so many new issues, by their numbers, without the first lines."""
        numbers = itertools.islice(self._numbers, count)
        return {number: self._request(number) for number in numbers}

    def _request(self, number: int) -> bytes:
        body = json.dumps(_issue(number, f"s{number % self._seats}")).encode()
        proof = hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        head = (
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"X-GitHub-Event: issues\r\nX-GitHub-Delivery: delivery-{number}\r\n"
            f"X-Hub-Signature-256: sha256={proof}\r\n\r\n"
        )
        return head.encode() + body

    async def post(self, request: bytes) -> None:
        """On the connection that is free first; returns with the answer."""
        line = await self._idle.get()
        await line.post(request)
        self._idle.put_nowait(line)

    async def at_rate(self, requests: Sequence[bytes], a_second: float) -> list[float]:
        """When each was due; the next one does not wait for an answer to the last."""
        began = time.monotonic()
        due = [began + n / a_second for n in range(len(requests))]
        async with asyncio.TaskGroup() as group:
            for request, at in zip(requests, due, strict=True):
                await asyncio.sleep(max(0.0, at - time.monotonic()))
                group.create_task(self.post(request))
        return due


class _Line:
    """One connection. A server closes one that was quiet for some seconds: then it is dialled and
    said again, as every client does."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url)
        self._first = f"POST {PATH} HTTP/1.1\r\nHost: {self._at.netloc}\r\n".encode()

    async def connect(self) -> None:
        opened = await asyncio.open_connection(self._at.hostname, self._at.port)
        self._reader, self._writer = opened

    def close(self) -> None:
        self._writer.close()

    async def post(self, request: bytes) -> None:
        try:
            head = await self._said(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            await self.connect()
            head = await self._said(request)
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        body = await self._reader.readexactly(length)
        assert head.split()[1] == ACCEPTED, head + body

    async def _said(self, request: bytes) -> bytes:
        self._writer.write(self._first + request)
        return await self._reader.readuntil(b"\r\n\r\n")


def _issue(number: int, login: str) -> dict[str, object]:
    """As GitHub has it, without what nobody reads."""
    return {
        "action": "assigned",
        "issue": {
            "number": number,
            "title": f"issue {number}",
            "body": "x" * 300,
            "user": {"login": "visitor"},
            "assignees": [{"login": login}],
            "labels": [],
        },
        "assignee": {"login": login},
        "repository": {"full_name": "octo/site", "name": "site", "owner": {"login": "octo"}},
        "sender": {"login": "visitor"},
    }
