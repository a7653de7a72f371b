"""The watchdog, over a clock that a test turns; and one real process whose loop stands still."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

from actors.watchdog import STALLED, Watchdog

STALL = """
import asyncio, time
from actors.watchdog import Watchdog

async def main():
    dog = Watchdog(0.3)
    dog.arm()
    await asyncio.sleep(0.2)
    print("beating", flush=True)
    time.sleep(30)
    print("never", flush=True)

asyncio.run(main())
"""


def test_a_loop_that_stands_still_takes_the_process_down_with_its_code() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STALL], capture_output=True, text=True, timeout=20, check=False
    )
    assert ended.returncode == STALLED
    assert ended.stdout == "beating\n"
    assert "stood still" in ended.stderr


def test_a_loop_that_beats_is_left_alone_and_a_disarmed_one_too() -> None:
    calls: list[float] = []

    async def main() -> None:
        dog = Watchdog(0.2, stalled=calls.append)
        dog.arm()
        for _ in range(10):
            await asyncio.sleep(0.05)
        dog.disarm()
        dog.disarm()
        assert "watchdog" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(main())
    assert calls == []


def test_it_stands_down_when_its_loop_is_gone() -> None:
    calls: list[float] = []
    dog = Watchdog(0.1, stalled=calls.append)

    async def main() -> None:
        dog.arm()

    asyncio.run(main())
    watching = dog._thread
    assert watching is not None
    watching.join(timeout=10)
    assert not watching.is_alive() and calls == []


def test_a_clock_that_jumped_once_is_given_a_beat_to_show_life() -> None:
    """Also a process that was stopped and goes on: the first look finds an old beat."""
    calls: list[float] = []
    jumped = threading.Event()
    base = [0.0]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        dog = Watchdog(0.5, stalled=calls.append, now=lambda: loop.time() + base[0])
        dog.arm()
        await asyncio.sleep(0.15)
        base[0] = 100.0
        jumped.set()
        await asyncio.sleep(0.5)
        dog.disarm()

    asyncio.run(main())
    assert calls == []
