"""Shown messages and turns that are given up: what else the ledger is told, and who hears of it."""

from __future__ import annotations

from typing import Any

import pytest
from inbound_bench import START, Bench, event, on_a_bench
from test_dispatch import Desk, at_a_desk, returns

from actors.delivery import Ack, Defer, Nak, Outcome, Partly
from actors.ports import Unavailable
from crewlet.errors import PublishUnknown, StoreUnavailable
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.triggers import TurnGuardBreach
from crewlet.handlers.outcomes import timed_out
from crewlet.inbound import turn_run
from crewlet.inbound.steps.worked import ALREADY_WORKED, ANSWERED_IN_THREAD
from crewlet.turn import Abandon, Answered, Turn


def said(id: str, message: str, *, key: str = "slack:C9:1718.001") -> Event:
    """A chat message, woken by it: `message` is its identity."""
    notification = {"source": "slack", "event_type": "message", "body": id, "occurrence": message}
    return Event.new(
        types.EXTERNAL_NOTIFICATION,
        id=id,
        at=START,
        trace=Trace.root(),
        payload={"partition_key": key, "conversation_identity": key},
        body={"notification": notification},
    )


# -- messages that a turn was shown ---------------------------------------------------


@pytest.mark.certifies(92)
def test_a_failed_message_that_a_later_turn_answered_is_dropped_and_says_so() -> None:
    async def play(desk: Desk) -> None:
        desk._handle = returns(Nak("no"))
        failed = said("A", "slack:C9:1718.002")
        await desk.run(failed)
        desk._handle = returns(Answered("both", ("slack:C9:1718.002",)))  # type: ignore[arg-type]
        assert await desk.run(said("B", "slack:C9:1718.003")) == Ack("both")
        assert await desk.run(failed) == Ack()
        assert desk.ids == [["A"], ["B"]]
        (skip,) = await desk.skipped()
        assert (skip.trigger_id, skip.reason) == ("A", ANSWERED_IN_THREAD)
        assert skip.worked_by == desk.worked[1].turn_id

    at_a_desk(play)


@pytest.mark.certifies(93)
def test_a_message_that_no_turn_was_shown_is_worked() -> None:
    async def play(desk: Desk) -> None:
        desk._handle = returns(Nak("no"))
        await desk.run(said("A", "slack:C9:1718.002"))
        desk._handle = returns(Answered("that one", ("slack:C9:1718.0",)))  # type: ignore[arg-type]
        await desk.run(said("B", "slack:C9:1718.003"))
        await desk.run(said("A", "slack:C9:1718.002"))
        await desk.run(said("C", ""))
        assert desk.ids == [["A"], ["B"], ["A"], ["C"]]

    at_a_desk(play)


@pytest.mark.certifies(90, 92)
def test_of_a_partition_only_the_answered_message_drops_out() -> None:
    async def play(desk: Desk) -> None:
        desk._handle = returns(Answered(None, ("slack:C9:1718.002",)))  # type: ignore[arg-type]
        await desk.run(said("X", "slack:C9:1718.009"))
        outcome = await desk.run(said("A", "slack:C9:1718.002"), said("B", "slack:C9:1718.003"))
        assert outcome == Partly(("A",), Ack())
        assert desk.ids == [["X"], ["B"]]

    at_a_desk(play)


@pytest.mark.certifies(92)
@pytest.mark.parametrize("outcome", [Nak("no"), Defer("later")])
def test_a_turn_that_did_not_finish_has_answered_nobody(outcome: Outcome) -> None:
    async def play(desk: Desk) -> None:
        await desk.run(said("B", "slack:C9:1718.003"))
        await desk.run(said("A", "slack:C9:1718.002"))
        assert desk.ids == [["B"], ["A"]]

    at_a_desk(play, handle=returns(outcome))


@pytest.mark.certifies(92)
def test_messages_of_another_seat_are_another_matter() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(said("B", "slack:C9:1718.003"))
        assert await desk.bench.ledger.worked("dev", ["message:slack:C9:1718.002"])
        assert await desk.bench.ledger.worked("ops", ["message:slack:C9:1718.002"]) == {}

    shown = Answered("both", ("slack:C9:1718.002",))
    at_a_desk(play, handle=returns(shown))  # type: ignore[arg-type]


# -- turns that are given up ----------------------------------------------------------


async def breaches(bench: Bench) -> list[TurnGuardBreach]:
    found = await bench.recorded(types.TURN_GUARD_BREACH)
    return [one.read(TurnGuardBreach) for one in found]


@pytest.mark.certifies(94, 162)
def test_an_abandoned_turn_counts_as_worked_and_everybody_is_told() -> None:
    async def play(desk: Desk) -> None:
        assert await desk.run(event("A"), event("B")) == Ack()
        (turn,) = desk.worked
        (breach,) = await breaches(desk.bench)
        assert (breach.guard, breach.reason) == ("abandoned", "the model declined")
        assert (breach.turn_id, breach.triggers) == (turn.turn_id, ("A", "B"))
        skips = await desk.skipped()
        assert [(one.trigger_id, one.reason) for one in skips] == [
            ("A", "the model declined"),
            ("B", "the model declined"),
        ]
        (completed,) = await desk.completed()
        assert (completed.outcome, completed.failed) == ("abandon", True)
        await desk.run(event("A"))
        assert len(desk.worked) == 1

    at_a_desk(play, handle=returns(Abandon("the model declined")))  # type: ignore[arg-type]


@pytest.mark.certifies(94)
def test_a_frame_that_breaks_is_recorded_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the handler's own failure: that is a Nak."""

    def breaks(*_: Any, **__: Any) -> Turn:
        raise ZeroDivisionError("in the frame")

    async def play(desk: Desk) -> None:
        monkeypatch.setattr(turn_run, "build_turn", breaks)
        assert await desk.run(event("A")) == Ack()
        monkeypatch.undo()
        (breach,) = await breaches(desk.bench)
        assert breach.guard == "panic" and "ZeroDivisionError: in the frame" in breach.reason
        (skip,) = await desk.skipped()
        assert (skip.trigger_id, skip.worked_by) == ("A", breach.turn_id)
        assert await desk.run(event("A")) == Ack()
        assert desk.worked == []
        assert [one.reason for one in await desk.skipped()][1:] in ([], [ALREADY_WORKED])

    at_a_desk(play)


@pytest.mark.certifies(91, 94)
@pytest.mark.parametrize(
    "outage",
    [
        StoreUnavailable("no answer"),
        PublishUnknown("m1", "crewlet.events.x", 10.0),
        Unavailable("no answer"),
        TimeoutError("the seat is silent"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_outage_is_no_panic(outage: Exception) -> None:
    async def main(bench: Bench) -> None:
        desk = Desk(bench)

        async def silent(*_: object, **__: object) -> Any:
            raise outage

        desk.dispatch._turn._end = silent  # type: ignore[method-assign]
        with pytest.raises(type(outage)):
            await desk.run(event("A"))
        assert await breaches(bench) == []
        assert await bench.ledger.worked("dev", ["A"]) == {}

    on_a_bench(main)


@pytest.mark.certifies(91, 94)
def test_without_its_row_a_turn_is_not_given_up_either() -> None:
    async def play(desk: Desk) -> None:
        desk.bench.store_down(True)
        assert isinstance(await desk.run(event("A")), Defer)
        assert await breaches(desk.bench) == []

    at_a_desk(play, handle=returns(Abandon("no")))  # type: ignore[arg-type]


@pytest.mark.certifies(161)
def test_a_turn_that_no_schedule_gave_is_out_of_time_without_a_breach() -> None:
    async def play(desk: Desk) -> None:
        assert await desk.run(event("A")) == Nak("timeout after 5 s")
        assert await breaches(desk.bench) == []

    at_a_desk(play, handle=returns(timed_out(5)))
