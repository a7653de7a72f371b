"""The brakes that what is done in turns puts on the seats of its own node."""

from __future__ import annotations

from collections.abc import Callable

from actors.machines import signals
from actors.runtime import SeatRuntime
from actors.seat import INBOX


class SeatBrakes:
    """`crewlet.inbound.work.Brakes` over the node's actors, which are there once it has started."""

    def __init__(self, runtime: Callable[[], SeatRuntime]) -> None:
        self._runtime = runtime

    async def hold(self, handle: str, name: str) -> bool:
        return await self._runtime().brake(handle, INBOX, signals.Hold(name)) is not None

    async def lift(self, handle: str, name: str) -> bool:
        return await self._runtime().brake(handle, INBOX, signals.Lift(name)) is not None
