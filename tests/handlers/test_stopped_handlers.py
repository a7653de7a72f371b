"""A person stops a running turn: what a process, a coroutine and a thread hear of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from handler_turns import AT, a_turn, until

from crewlet.company import HandlerSpec
from crewlet.errors import TurnStopped
from crewlet.events import Trace
from crewlet.handlers import Handler, build_handler, wrap
from crewlet.inbound.desk import Asker, TurnDesk
from crewlet.inbound.running import RunningTurn, Turns
from crewlet.turn import Ack, Outcome, Turn

pytestmark = pytest.mark.certifies(147)


ASKER = Asker(handle="dev", turn_id="t-1", work_key="", depth=0, chain=(), trace=Trace.root())


class Seat:
    """A turn that runs on a node, and the person who may stop it."""

    def __init__(self) -> None:
        self.turns = Turns(1)
        self.turns.started(RunningTurn("t-1", "dev", "k", AT))

    @property
    def turn(self) -> Turn:
        return a_turn().at(TurnDesk(ASKER, None, self.turns))

    def stop(self) -> None:
        assert self.turns.halt("dev", "ann")


async def stopped(handler: Handler, seat: Seat, started: Path | None = None) -> str:
    """Run it, stop it once it runs; what comes out."""
    call = asyncio.ensure_future(handler(seat.turn))
    if started is not None:
        await until(started.exists)
    else:
        await asyncio.sleep(0.05)
    seat.stop()
    with pytest.raises(TurnStopped) as raised:
        await call
    return str(raised.value)


def command(script: str) -> Handler:
    return build_handler(HandlerSpec(command=("/bin/sh", "-c", script), timeout_s=30))


def test_a_process_gets_sigterm_and_may_clean_up(tmp_path: Path) -> None:
    up, clean = tmp_path / "up", tmp_path / "clean"
    script = f"trap 'touch {clean}; exit 0' TERM; touch {up}; while :; do sleep 0.05; done"
    assert asyncio.run(stopped(command(script), Seat(), up)) == "ann stopped this turn"
    assert clean.exists()


def test_a_process_that_does_not_hear_is_killed(tmp_path: Path) -> None:
    up, began = tmp_path / "up", time.monotonic()
    script = f"trap '' TERM; touch {up}; while :; do sleep 0.05; done"
    asyncio.run(stopped(command(script), Seat(), up))
    assert time.monotonic() - began < 10


def test_a_process_that_ended_first_has_its_own_outcome() -> None:
    async def main() -> Outcome:
        seat = Seat()
        outcome = await command("echo done")(seat.turn)
        seat.stop()
        return outcome

    assert asyncio.run(main()) == Ack("done")


def test_a_coroutine_ends_at_its_checkpoint() -> None:
    async def body(turn: Turn) -> str:
        while True:
            turn.checkpoint()
            await asyncio.sleep(0.01)

    assert asyncio.run(stopped(wrap(body, 30), Seat())) == "ann stopped this turn"


def test_a_thread_ends_at_its_checkpoint(tmp_path: Path) -> None:
    def body(turn: Turn) -> str:
        (tmp_path / "up").touch()
        while True:
            turn.checkpoint()
            time.sleep(0.01)

    assert asyncio.run(stopped(wrap(body, 30), Seat(), tmp_path / "up")) == "ann stopped this turn"


def test_a_coroutine_can_wait_for_it() -> None:
    async def body(turn: Turn) -> str:
        await turn.stopping()
        turn.checkpoint()
        return "never"

    assert asyncio.run(stopped(wrap(body, 30), Seat())) == "ann stopped this turn"


def test_where_no_node_runs_it_nobody_can_stop_it() -> None:
    async def main() -> None:
        turn = a_turn()
        turn.checkpoint()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await turn.stopping()

    asyncio.run(main())


def test_it_is_asked_once_and_a_resume_does_not_take_it_back() -> None:
    seat = Seat()
    seat.stop()
    assert not seat.turns.halt("dev", "bob")
    seat.turns.go_on("dev")
    assert seat.turns.stopped_by("t-1") == "ann" and not seat.turns.halted("dev")
    seat.turns.ended("t-1", AT)
    assert seat.turns.stopped_by("t-1") == ""
