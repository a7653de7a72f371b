"""Plays a script over both and says where they part."""

from __future__ import annotations

import asyncio
import itertools
import secrets

from crewlet.testing import run_virtual
from tests.differential import port_steps
from tests.differential.pace import Followed, Recorded
from tests.differential.port_play import Line, Player
from tests.differential.worlds import Real, Twin

_run = secrets.token_hex(3)
_numbers = itertools.count(1)


def difference(runner: asyncio.Runner, real: Real, script: port_steps.Script) -> str | None:
    """Where JetStream and the twin part over this script; None where they do not."""
    prefix = f"d{_run}{next(_numbers)}"

    async def on_the_server() -> tuple[list[float], list[Line]]:
        pace = Recorded()
        player = Player(real, pace, prefix)
        await player.play(script)
        return pace.times, player.lines

    times, wanted = runner.run(on_the_server())

    async def on_the_twin() -> list[Line]:
        player = Player(Twin(), Followed(times), prefix)
        await player.play(script)
        return player.lines

    return parted(wanted, run_virtual(on_the_twin))


def parted(wanted: list[Line], seen: list[Line]) -> str | None:
    """The first line that is another one, and all that led there."""
    for at, (one, two) in enumerate(itertools.zip_longest(wanted, seen)):
        if one != two:
            before = "\n".join(f"  {_shown(line)}" for line in wanted[:at])
            return f"\n{before}\njetstream {_shown(one)}\ntwin      {_shown(two)}"
    return None


def _shown(line: Line | None) -> str:
    return "nothing" if line is None else " | ".join(repr(part) for part in line)
