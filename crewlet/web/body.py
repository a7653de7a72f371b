"""Request bodies, read within bounds of size, time and the memory of all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from crewlet.web.answers import Refused, busy
from crewlet.web.edge import Limits


class Load:
    """What the edge holds at the moment: bytes of bodies, and deliveries that are published."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.buffered_bytes = 0
        self.publishing = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body, for as long as the block lasts. Raises Refused (413, 408, 429, 415) or
        starlette's ClientDisconnect."""
        refuse_encoding(request)
        refuse_announced(request, self.limits)
        chunks: list[bytes] = []
        try:
            await self._arrived(request, chunks)
            yield b"".join(chunks)
        finally:
            self.buffered_bytes -= sum(map(len, chunks))

    async def _arrived(self, request: Request, chunks: list[bytes]) -> None:
        within_s = self.limits.body_s
        try:
            async with asyncio.timeout(within_s):
                await self._collect(request, chunks)
        except TimeoutError:
            sentence = f"the body did not arrive within {within_s:g} s"
            raise Refused(408, "timeout", sentence, {"connection": "close"}) from None

    async def _collect(self, request: Request, chunks: list[bytes]) -> None:
        size = 0
        async for chunk in request.stream():
            chunks.append(chunk)
            size += len(chunk)
            self.buffered_bytes += len(chunk)
            if size > self.limits.body_bytes:
                raise too_large(self.limits)
            if self.buffered_bytes > self.limits.buffered_bytes:
                raise busy(429, "busy", "too many deliveries at the same time")

    @asynccontextmanager
    async def publish(self) -> AsyncIterator[None]:
        """A place among those that wait for the broker. Raises Refused (429)."""
        if self.publishing >= self.limits.publishing:
            raise busy(429, "busy", "too many deliveries at the same time")
        self.publishing += 1
        try:
            yield
        finally:
            self.publishing -= 1


def refuse_encoding(request: Request) -> None:
    """A compressed body may unpack to anything; no vendor of ours sends one."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(415, "content_encoding", "send the body without a Content-Encoding")


def refuse_announced(request: Request, limits: Limits) -> None:
    """A Content-Length above the limit is believed at once; below it, the bytes are counted."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limits.body_bytes:
        raise too_large(limits)


def too_large(limits: Limits) -> Refused:
    return Refused(413, "too_large", f"a body has at most {limits.body_bytes} bytes")
