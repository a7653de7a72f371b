"""A node's process looks at all that lives once in a while, and not because much came to live."""

from __future__ import annotations

import asyncio
import gc
import weakref

from crewlet.node.garbage import EVERY_S, NEVER, YOUNG, collected_seldom
from crewlet.testing import run_virtual


def full() -> int:
    """How often all that lives was looked at."""
    return int(gc.get_stats()[2]["collections"])


class Circle:
    def __init__(self) -> None:
        self.me = self


def test_however_much_comes_to_live_nothing_but_the_young_is_looked_at() -> None:
    async def main() -> None:
        async with collected_seldom():
            began, kept = full(), []
            for _ in range(40):
                kept.append([[number] for number in range(20_000)])
            assert full() == began
            young = [weakref.ref(Circle()) for _ in range(100)]
            made = [[number] for number in range(2 * YOUNG[0])]
            assert all(ref() is None for ref in young)
            del made, kept

    run_virtual(main, seed=1)


def test_a_circle_that_grew_old_is_found_in_time() -> None:
    async def main() -> None:
        async with collected_seldom():
            circle = Circle()
            gc.collect(1)
            old = weakref.ref(circle)
            del circle
            await asyncio.sleep(EVERY_S - 1)
            assert old() is not None
            began = full()
            await asyncio.sleep(2)
            assert old() is None and full() == began + 1

    run_virtual(main, seed=1)


def test_what_was_set_before_is_set_again() -> None:
    async def main() -> None:
        before = gc.get_threshold()
        try:
            async with collected_seldom():
                assert gc.get_threshold() == (*YOUNG, NEVER)
                raise ValueError
        except ValueError:
            assert gc.get_threshold() == before and gc.get_freeze_count() == 0

    run_virtual(main, seed=1)
