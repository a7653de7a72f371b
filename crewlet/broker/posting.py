"""A durable publish: into the stream of its topic, to the server's acknowledgement."""

from __future__ import annotations

import asyncio
import time

from actors.ports import Receipt, TooLarge, Unavailable
from crewlet.broker.api import Api
from crewlet.broker.coverage import Coverage
from crewlet.broker.pull import ID_HEADER
from crewlet.broker.topology import Topology
from crewlet.broker.wire import NoResponders


class Posting:
    """One deadline for all that a publish asks of the server, and a timer of its own only where
    that is more than the publish itself: a mailbox that is not known yet, a stream to be made."""

    def __init__(self, api: Api, topology: Topology, coverage: Coverage) -> None:
        self._api = api
        self._topology = topology
        self._coverage = coverage

    async def post(self, topic: str, body: bytes, message_id: str, within_s: float) -> Receipt:
        """See actors.ports.Broker.publish. ApiError for a no of the server."""
        limit = self._api.wire.body_limit
        if len(body) > limit:
            raise TooLarge(
                f"a message of {len(body)} bytes for {topic}: the limit is {limit} bytes"
            )
        if not (self._topology.has(topic) and self._coverage.covers(topic)):
            within_s = await self._prepared(topic, within_s)
        headers = {ID_HEADER: message_id} if message_id else None
        try:
            answer = await self._api.ask(topic, body, headers=headers, wait_s=within_s)
        except NoResponders:
            self._topology.forget_of(topic)  # somebody deleted it: made again on the retry
            raise
        return Receipt(position=answer["seq"], duplicate=answer.get("duplicate", False))

    async def _prepared(self, topic: str, within_s: float) -> float:
        """A mailbox and a stream are there; how many seconds are left."""
        deadline = time.monotonic() + within_s
        try:
            async with asyncio.timeout(within_s):
                await self._coverage.check(topic)
                await self._topology.ensure_for(topic)
        except TimeoutError:
            raise Unavailable(f"the broker did not answer within {within_s:.1f} s") from None
        return max(0.001, deadline - time.monotonic())
