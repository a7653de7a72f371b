"""When a node's process looks for garbage: not while it takes a thousand seats.

A full collection looks at all that lives, 0.1 to 0.3 s up to a thousand seats, and nothing else is
handled meanwhile. Python begins one whenever a quarter more lives than at the last, which
is just when seats are taken. Here one is made once in a while instead. What dies young is found by
the small ones, as always; nearly all else is freed by its last reference, without any.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

EVERY_S: Final = 600.0
"""Between two full collections."""

YOUNG: Final = (20_000, 50)
"""Objects more than before, until the youngest are looked at; and how often that is done until
those that outlived it are."""

NEVER: Final = 1_000_000
"""How often that is done, until Python would look at everything."""


@asynccontextmanager
async def collected_seldom(every_s: float = EVERY_S) -> AsyncIterator[None]:
    """Inside the block the garbage of this process, all threads of it, is collected fully each
    `every_s` seconds and not else; what was imported before is left out. The rules that were there
    come back behind it."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*YOUNG, NEVER)
    collecting = asyncio.ensure_future(_collect(every_s))
    try:
        yield
    finally:
        collecting.cancel()
        with suppress(asyncio.CancelledError):
            await collecting
        gc.set_threshold(*before)
        gc.unfreeze()


async def _collect(every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        gc.collect()
