"""Calls to the broker that are made again until it takes them.

What is tried again is only what the broker may take later. What it will never take - the
client has stopped, the message is too large for it - is given up, and said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from actors.ports import BrokerError, Unavailable

FIRST_S: Final = 0.2
LONGEST_S: Final = 5.0

T = TypeVar("T")

log = structlog.get_logger(__name__)


def always() -> bool:
    return True


async def until_taken(
    call: Callable[[], Awaitable[T]], what: str, wanted: Callable[[], bool] = always
) -> T | None:
    """The call's answer; None where the broker will never take it, or it is not `wanted` any
    more: then the broker is not asked again."""
    pause_s = FIRST_S
    while wanted():
        try:
            return await call()
        except Unavailable as error:
            log.warning("broker_call_retried", call=what, error=str(error))
        except BrokerError as error:
            log.error("broker_call_given_up", call=what, error=repr(error)[:200])
            return None
        await asyncio.sleep(pause_s)
        pause_s = min(LONGEST_S, pause_s * 2)
    return None
