"""Plays a script over both and says where they part."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Sequence
from typing import Any, Final, Protocol

from crewlet.testing import run_virtual
from tests.differential.pace import Followed, Pace, Recorded
from tests.differential.worlds import Real, Twin, World

SHOWN: Final = 400

_run = secrets.token_hex(3)
_numbers = itertools.count(1)


class Player(Protocol):
    """One run of a script."""

    @property
    def lines(self) -> list[Any]:
        """What was done and seen, step by step."""

    async def play(self, script: Any) -> None: ...


class Make(Protocol):
    """A player's class."""

    def __call__(self, world: World, pace: Pace, prefix: str) -> Player: ...


class Bench:
    """A server and the loop that its clients live in."""

    def __init__(self, runner: asyncio.Runner, real: Real) -> None:
        self.once: list[str] = []
        """Differences that did not come a second time."""
        self._runner = runner
        self._real = real

    def difference(self, make: Make, script: Sequence[object]) -> str | None:
        """Where JetStream and the twin part over this script; None where they do not.

        A server that is slow once parts from the twin once: a difference comes twice.
        """
        first = self._played(make, script)
        if first is None:
            return None
        again = self._played(make, script)
        if again is None:
            self.once.append(first)
        return again

    def _played(self, make: Make, script: Sequence[object]) -> str | None:
        prefix = f"d{_run}{next(_numbers)}"

        async def on_the_server() -> tuple[list[float], list[Any]]:
            pace = Recorded()
            player = make(self._real, pace, prefix)
            await player.play(script)
            return pace.times, player.lines

        times, wanted = self._runner.run(on_the_server())

        async def on_the_twin() -> list[Any]:
            player = make(Twin(), Followed(times), prefix)
            await player.play(script)
            return player.lines

        return parted(wanted, run_virtual(on_the_twin))


def parted(wanted: list[Any], seen: list[Any]) -> str | None:
    """The first line that is another one, and all that led there."""
    for at, (one, two) in enumerate(itertools.zip_longest(wanted, seen)):
        if one != two:
            before = "\n".join(f"  {_shown(line)}" for line in wanted[:at])
            return f"\n{before}\njetstream {_shown(one)}\ntwin      {_shown(two)}"
    return None


def _shown(line: Any) -> str:
    return "nothing" if line is None else " | ".join(repr(part)[:SHOWN] for part in line)
