"""Waiting for a cluster: at its first boot it has no leader until most members were started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from actors.ports import Unavailable
from crewlet.broker.wire import NoResponders

log = structlog.get_logger(__name__)

AGAIN_S: Final = 0.5
SAY_S: Final = 5.0
"""How often somebody who watches is told what is waited for."""


async def patiently(work: Callable[[], Awaitable[None]], patience_s: float) -> None:
    """Do the work, again and again while the broker cannot, for so long. Unavailable at last;
    NoResponders at once: no member that is on its way changes what its peers are not."""
    began = time.monotonic()
    said = began - SAY_S + 2 * AGAIN_S  # an election takes a moment and is no news
    while True:
        try:
            await work()
            return
        except NoResponders:
            raise
        except Unavailable as error:
            now = time.monotonic()
            if now - began >= patience_s:
                raise
            if now - said >= SAY_S:
                said = now
                log.warning(
                    "broker_waits_for_its_cluster",
                    waited_s=round(now - began, 1),
                    at_most_s=patience_s,
                    reason=str(error),
                )
        await asyncio.sleep(AGAIN_S)
