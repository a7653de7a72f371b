"""C32: two processes with one node id, one data folder, a copy of one; and a killed node that
comes back at once under its old name."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from tests.chaos.checks import judge
from tests.chaos.fleet import TTL_S, Fleet
from tests.chaos.processes import NodeProcess, until

REFUSED = 3


def _double(fleet: Fleet, node: NodeProcess, folder: str) -> NodeProcess:
    """Another process of that node's id, with a folder of its own."""
    double = NodeProcess(
        node.name, fleet.folder / folder, fleet.folder / "company.yaml", fleet.links[0].urls
    )
    double.configure()
    return double


async def _refused(double: NodeProcess) -> str:
    """What it said when it was refused."""
    double.start()
    await until(lambda: not double.running, 30, "it is refused")
    words = double.words()
    assert double.lives[-1].code == REFUSED, words
    assert "Traceback" not in words
    return [line for line in words.splitlines() if not line.startswith("{")][-1]


async def _play_doubles(folder: Path) -> None:
    async with Fleet(folder, nodes=2, seats=4) as fleet:
        await fleet.boot()
        first = fleet.nodes[0]
        load = asyncio.create_task(_steady(fleet, 60))
        said = await _refused(_double(fleet, first, "double"))
        assert "must not share a node id" in said and "n1" in said
        shutil.copytree(
            first.data, fleet.folder / "clone" / "data", ignore=lambda d, names: _sockets(d, names)
        )
        assert "must not share a node id" in await _refused(_double(fleet, first, "clone"))
        same = _double(fleet, first, "same")
        same.data = first.data
        assert first.process is not None
        said = await _refused(same)
        assert f"pid {first.process.pid}" in said and str(first.data) in said
        await load
        assert await fleet.worked(30), fleet.waits_for()
        assert first.running and len(first.lives) == 1
        turns = fleet.turns()
        assert not judge(fleet.recorded, turns).faults
        assert {len(turn.keys) for turn in turns} == {1} and len(turns) == 60, "each once"


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_socket()]


async def _steady(fleet: Fleet, count: int) -> None:
    for n in range(count):
        await fleet.send(fleet.seats[n % len(fleet.seats)], f"m{n}", 20)
        await asyncio.sleep(0.1)


@pytest.mark.field("C32")
def test_two_processes_of_one_id_and_the_second_is_refused(tmp_path: Path) -> None:
    asyncio.run(_play_doubles(tmp_path))


async def _play_comeback(folder: Path, *, others: bool) -> float:
    async with Fleet(folder, nodes=2 if others else 1, seats=2) as fleet:
        await fleet.boot()
        node = fleet.nodes[0]
        seat = next(seat for seat, owner in fleet.owners().items() if owner == node.name)
        await fleet.send(seat, "long", 60_000)
        await until(lambda: fleet.turns(), 20, "the long turn runs")
        killed = await node.kill()
        node.start()
        again = await until(lambda: fleet.turns()[1:], 30, "it runs again")
        said = "".join(one.log.read_text(errors="replace") for one in fleet.nodes)
        # What a fetch of the killed process was given meanwhile was looked for, and counts.
        swallowed = said.count("strays_reclaimed")
        assert again[0].keys == ("long",) and again[0].attempt == 2 + swallowed, said[-4000:]
        epochs = [row.epoch for row in fleet.recorded.seat_rows if row.seat == seat]
        assert epochs == sorted(set(epochs)), "taken anew, never renewed"
        return float(again[0].began - killed)


@pytest.mark.field("C32")
@pytest.mark.parametrize(
    "others",
    [pytest.param(False, id="alone", marks=pytest.mark.long), pytest.param(True, id="in a fleet")],
)
def test_a_killed_node_that_is_back_at_once_goes_on(tmp_path: Path, others: bool) -> None:
    began = time.monotonic()
    took_s = asyncio.run(_play_comeback(tmp_path, others=others))
    assert took_s < TTL_S + 1, f"{took_s:.1f} s of {time.monotonic() - began:.1f}"
