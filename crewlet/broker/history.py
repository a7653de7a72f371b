"""The newest messages of a stream that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from actors.ports import Unavailable
from crewlet.broker.api import STREAM_MISSING, WAIT_S, Api, ApiError, Stored, timestamp
from crewlet.broker.route import Message, status
from crewlet.broker.wire import Wire

MOST: Final = 10_000
"""An answer is held in memory whole."""

PAGE: Final = 500
PAGE_BYTES: Final = 16 * 1024 * 1024

_END: Final = "204"


class History:
    """Reads without a consumer: each question is answered and leaves nothing at the broker."""

    def __init__(self, wire: Wire, api: Api) -> None:
        self._wire = wire
        self._api = api

    async def last(self, stream: str, pattern: str, most: int) -> Sequence[Stored]:
        """The newest `most` (MOST at the most) messages that match, oldest first."""
        most = min(most, MOST)
        state = await self._state(stream)
        if state is None or most <= 0 or state["messages"] == 0:
            return []
        first, last = state["first_seq"], state["last_seq"]
        start = await self._start(stream, pattern, most, first, last)
        found: list[Stored] = []
        while start <= last:
            page, left = await self._page(stream, pattern, start, min(PAGE, most - len(found)))
            found += page
            if not page or not left or len(found) >= most:
                break
            start = page[-1].sequence + 1
        return found

    async def _start(self, stream: str, pattern: str, most: int, first: int, last: int) -> int:
        """The highest sequence from which `most` messages match; `first` where fewer do."""
        low = high = max(first, last - most + 1)
        # Down in growing steps until enough match, then halve the last step.
        while (count := await self._count(stream, pattern, low)) < most and low > first:
            high, low = low, max(first, low - 4 * (last - low + 1))
        while count > most and high - low > 1:
            middle = (low + high) // 2
            matching = await self._count(stream, pattern, middle)
            if matching < most:
                high = middle
            else:
                low, count = middle, matching
        return low

    async def _count(self, stream: str, pattern: str, start: int) -> int:
        page, left = await self._page(stream, pattern, start, 1)
        return len(page) + left

    async def _state(self, stream: str) -> dict[str, Any] | None:
        try:
            state: dict[str, Any] = (await self._api.call(f"STREAM.INFO.{stream}"))["state"]
        except ApiError as error:
            if error.code == STREAM_MISSING:
                return None
            raise
        return state

    async def _page(
        self, stream: str, pattern: str, start: int, most: int
    ) -> tuple[list[Stored], int]:
        """Up to `most` matching messages from `start` on, and how many match after them."""
        page: list[Stored] = []
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def deliver(message: Message) -> None:
            headers = message.headers
            if "Nats-Sequence" in headers:
                page.append(_stored(message.data, headers))
            elif not done.done():
                done.set_result(_left(status(message), headers))

        inbox = self._wire.new_inbox()
        route = self._wire.route(inbox, deliver)
        question = {
            "seq": start,
            "next_by_subj": pattern,
            "batch": most,
            "max_bytes": PAGE_BYTES,
        }
        try:
            self._wire.send(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(question), inbox)
            async with asyncio.timeout(WAIT_S):
                left = await done
        except TimeoutError:
            raise Unavailable(f"the broker did not list {stream} within {WAIT_S:.0f} s") from None
        finally:
            self._wire.drop(route)
        if left < 0:
            raise Unavailable(f"the broker does not serve reads of {stream} now")
        return page, left


def _left(code: str, headers: Mapping[str, str]) -> int:
    """How many match beyond the page; -1 where the answer was no answer."""
    if code == _END:
        return int(headers.get("Nats-Num-Pending", "0"))
    return 0 if code == "404" else -1


def _stored(body: bytes, headers: Mapping[str, str]) -> Stored:
    return Stored(
        subject=headers["Nats-Subject"],
        sequence=int(headers["Nats-Sequence"]),
        at=timestamp(headers["Nats-Time-Stamp"]),
        body=body,
        headers=dict(headers),
    )
