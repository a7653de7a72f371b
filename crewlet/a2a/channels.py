"""The records of channels, as the coordination store has them.

Three answers, as everywhere: done, no (ReplyRefused, a lost race), unknown (StoreUnavailable).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from crewlet.a2a.channel import Channel, Input, is_channel_id, step
from crewlet.coordination.store import CHANNELS, Conflict, Entry, Store
from crewlet.errors import ReplyRefused, StoreUnavailable

TRIES: Final = 16
"""Of a change that others come before: more than there are who could."""

log = structlog.get_logger(__name__)


class Kept(Struct, frozen=True):
    """A record, and the revision that a change of exactly this one names."""

    channel: Channel
    revision: int


class Channels:
    """Never aged by the bucket: a clock cannot tell an open channel from a closed one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self, channel: Channel) -> tuple[Channel, bool]:
        """The record under this id, and whether this call made it."""
        for _ in range(TRIES):
            try:
                await self._store.create(CHANNELS, channel.id, _encoded(channel))
                return channel, True
            except Conflict:
                if (kept := await self.get(channel.id)) is not None:
                    return kept.channel, False
        raise StoreUnavailable(f"channel {channel.id} comes and goes; try again")

    async def get(self, id: str) -> Kept | None:
        """None where there is none, or what is asked for is no channel's id."""
        if not is_channel_id(id):
            return None
        entry = await self._store.get(CHANNELS, id)
        if entry is None:
            return None
        try:
            return _decoded(entry)
        except msgspec.MsgspecError as error:
            raise StoreUnavailable(f"channel {id} cannot be read: {error}") from None

    async def advance(self, id: str, given: Input) -> tuple[Channel, bool]:
        """Let this happen to the channel as it is: what it is then, and whether it was this call
        that changed it. ReplyRefused where the channel does not take it, or is not there."""
        for _ in range(TRIES):
            kept = await self.get(id)
            if kept is None:
                raise ReplyRefused(f"there is no channel {id[:64]!r}: nobody waits for an answer")
            after = step(kept.channel, given)
            if after is kept.channel:
                return after, False
            if await self._write(after, kept.revision):
                return after, True
        raise StoreUnavailable(f"others change channel {id} all the time; try again")

    async def advance_as_seen(self, kept: Kept, given: Input) -> Channel | None:
        """The same, if nothing has happened to the channel since; None where something has."""
        after = step(kept.channel, given)
        return after if await self._write(after, kept.revision) else None

    async def all(self) -> Sequence[Kept]:
        """Every record that this build can read, by id."""
        found = []
        for entry in await self._store.list(CHANNELS):
            try:
                found.append(_decoded(entry))
            except msgspec.MsgspecError as error:
                log.error("channel_unreadable", key=entry.key, error=str(error))
        return found

    async def forget(self, id: str) -> None:
        """The record is old enough."""
        await self._store.delete(CHANNELS, id)

    async def _write(self, channel: Channel, revision: int) -> bool:
        try:
            await self._store.update(CHANNELS, channel.id, _encoded(channel), revision)
        except Conflict:
            return False
        return True


def _encoded(channel: Channel) -> bytes:
    return msgspec.json.encode(channel)


def _decoded(entry: Entry) -> Kept:
    return Kept(msgspec.json.decode(entry.value, type=Channel), entry.revision)
