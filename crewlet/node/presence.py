"""One node per company, until leases share the seats: a key that its owner renews.

An embedded broker is proof enough - its folder is locked - so this is for a broker that
somebody else runs. A key that nobody renews lapses; one that is renewed while we wait belongs
to a node that lives, and then we are refused.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from actors.ports import Clock
from crewlet.coordination.store import PRESENCE, Conflict, Entry, Store
from crewlet.errors import NodeRefused, StoreUnavailable

TTL_S: Final = 10.0
RENEW_S: Final = 3.0
LOOK_S: Final = 0.5
KEY: Final = "node"

log = structlog.get_logger(__name__)


class Owner(Struct, frozen=True):
    """Who serves the company: a process, not a name that two processes may share."""

    incarnation: str
    node_id: str
    host: str
    pid: int
    renewed_at: datetime
    released: bool = False

    def __str__(self) -> str:
        return f"node {self.node_id!r} (pid {self.pid} on {self.host})"


class Presence:
    """The key, from `claim` to `release`. `lost` is called when somebody else has it."""

    def __init__(self, store: Store, node_id: str, clock: Clock, lost: Callable[[], None]) -> None:
        self._store = store
        self._node_id = node_id
        self._incarnation = f"{node_id}:{secrets.token_hex(6)}"
        self._clock = clock
        self._lost = lost
        self._revision = 0
        self._renewing: asyncio.Task[None] | None = None

    async def claim(self) -> None:
        """Take the key. One that was not given up is watched for its whole lifetime on this
        host's own clock: the clocks of two hosts prove nothing about each other. Raises
        NodeRefused where its owner lives."""
        entry = await self._store.get(PRESENCE, KEY)
        if entry is not None and not (owner := _owner(entry)).released:
            log.warning("presence_held", owner=str(owner), lapses_in_s=TTL_S)
            deadline = self._clock.monotonic() + TTL_S
            while self._clock.monotonic() < deadline:
                await asyncio.sleep(LOOK_S)
                now = await self._store.get(PRESENCE, KEY)
                if now is None or _owner(now).released:
                    entry = now
                    break
                if now.revision != entry.revision:
                    raise NodeRefused(_alive(_owner(now)))
        await self._take(entry)
        self._renewing = asyncio.create_task(self._renew())

    async def _take(self, entry: Entry | None) -> None:
        try:
            if entry is None:
                self._revision = await self._store.create(PRESENCE, KEY, self._value())
            else:
                self._revision = await self._store.update(
                    PRESENCE, KEY, self._value(), entry.revision
                )
        except Conflict:
            raise NodeRefused("another node took the company a moment before this one") from None

    async def _renew(self) -> None:
        """Until it is lost. A store that does not answer says nothing about the owner."""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                self._revision = await self._store.update(
                    PRESENCE, KEY, self._value(), self._revision
                )
            except Conflict:
                if await self._still_ours():
                    continue
                log.error("presence_lost", node=self._node_id)
                self._lost()
                return
            except StoreUnavailable as error:
                log.warning("presence_not_renewed", error=str(error))

    async def _still_ours(self) -> bool:
        """A renewal whose answer was lost looks like a conflict: read who holds the key."""
        try:
            entry = await self._store.get(PRESENCE, KEY)
        except StoreUnavailable:
            return True
        if entry is None:
            self._revision = 0
            return False
        self._revision = entry.revision
        return _owner(entry).incarnation == self._incarnation

    async def release(self) -> None:
        """Give the key up, so that a successor need not wait. Unanswered, it lapses."""
        if self._renewing is None:
            return
        self._renewing.cancel()
        await asyncio.gather(self._renewing, return_exceptions=True)
        self._renewing = None
        try:
            given_up = self._value(released=True)
            await self._store.update(PRESENCE, KEY, given_up, self._revision)
        except (Conflict, StoreUnavailable) as error:
            log.info("presence_left_to_lapse", error=str(error))

    def _value(self, *, released: bool = False) -> bytes:
        return msgspec.json.encode(
            Owner(
                incarnation=self._incarnation,
                node_id=self._node_id,
                host=socket.gethostname(),
                pid=os.getpid(),
                renewed_at=self._clock.now(),
                released=released,
            )
        )


def _owner(entry: Entry) -> Owner:
    return msgspec.json.decode(entry.value, type=Owner)


def _alive(owner: Owner) -> str:
    return (
        f"{owner} serves this company on the same broker and is alive; one node per broker is "
        "served for now: stop it, or give this company a broker of its own"
    )
