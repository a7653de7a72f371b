"""The step that offers a message to the run that asked: once, and in its place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from runs_bench import Bench, message, on_benches, work_of

from actors.delivery import Ack, Defer, Partly
from crewlet.inbound.steps.answers import RESERVE, UNRECORDED, Answers
from crewlet.inbound.steps.holds import Holds
from crewlet.runs.row import State

ONE = timedelta(seconds=1)


async def asking(bench: Bench) -> None:
    await bench.open()
    await bench.runs.asks("dev", "r1", "Which branch?")
    await bench.told()
    assert (await bench.row()).state is State.ASKING and not bench.held


@pytest.mark.certifies(141)
def test_the_first_younger_message_of_the_conversation_is_the_answer_and_the_rest_waits() -> None:
    async def play(bench: Bench) -> None:
        await asking(bench)
        now = bench.clock.now()
        work = work_of(
            message("before", now - ONE),
            message("m1", now + ONE),
            message("m2", now + 2 * ONE),
        )
        outcome = await Answers(bench.runs)(work)
        assert isinstance(outcome, Defer) and bench.held
        assert [letter.id for letter in work.letters] == ["before", "m2"]
        assert work.outcome(outcome) == Partly(("m1",), outcome)
        run = await bench.row()
        assert run.outbox is not None and run.outbox.event_id == "m1"

    on_benches(play)


@pytest.mark.certifies(141)
def test_other_conversations_and_the_ends_of_runs_are_no_answers() -> None:
    async def play(bench: Bench) -> None:
        await asking(bench)
        at = bench.clock.now() + ONE
        await bench.open("r2", turn="t2")
        await bench.runs.completed("dev", "r2", "done")
        await bench.told()
        (end,) = await bench.inbox()
        for event in (message("m1", at, key="chat:C2"), end):
            work = work_of(event)
            assert await Answers(bench.runs)(work) is None and len(work.letters) == 1
        assert (await bench.row()).state is State.ASKING

    on_benches(play)


@pytest.mark.certifies(144)
def test_an_answer_that_comes_again_before_it_was_settled_is_not_a_second_one() -> None:
    async def play(bench: Bench, other: Bench) -> None:
        await asking(bench)
        await other.runs.recover("dev")
        answer = message("m1", bench.clock.now() + ONE)
        assert await Answers(bench.runs)(work_of(answer)) is None
        again = work_of(answer, count=2)
        assert await Answers(other.runs)(again) is None
        assert again.letters == () and other.held, "what it knew was old; the row has it"

    on_benches(play, "n1", "n2")


@pytest.mark.certifies(142)
def test_an_answer_that_cannot_be_recorded_keeps_its_place() -> None:
    async def play(bench: Bench) -> None:
        await asking(bench)
        answer = message("m1", bench.clock.now() + ONE)
        bench.broker.shelves.down = True
        outcome = await Answers(bench.runs)(work_of(answer))
        assert outcome == Defer(UNRECORDED, retry_after_s=1.0)
        bench.broker.shelves.down = False
        assert await Answers(bench.runs)(work_of(answer, count=2)) is None
        assert (await bench.row()).state is State.RESUMING

    on_benches(play)


@pytest.mark.certifies(142)
def test_with_five_deliveries_left_it_goes_the_ordinary_way() -> None:
    async def play(bench: Bench) -> None:
        await asking(bench)
        answer = message("m1", bench.clock.now() + ONE)
        bench.broker.shelves.down = True
        last_offer = 25 - RESERVE - 1
        assert isinstance(await Answers(bench.runs)(work_of(answer, count=last_offer)), Defer)
        work = work_of(answer, count=last_offer + 1)
        assert await Answers(bench.runs)(work) is None and len(work.letters) == 1

    on_benches(play)


@pytest.mark.certifies(143, 144)
def test_an_answer_that_a_turn_worked_after_all_is_not_the_runs_too() -> None:
    """It was recorded without anybody knowing, and went the ordinary way."""

    async def play(bench: Bench) -> None:
        await asking(bench)
        answer = message("m1", bench.clock.now() + ONE)
        await Answers(bench.runs)(work_of(answer))
        await bench.ledger.record("dev", ["m1"], turn_id="t9", node="n1", at=bench.clock.now())
        with pytest.raises(Exception, match="waits for an answer"):
            await bench.runs.take("dev", "r1")
        assert (await bench.row()).state is State.ASKING and not bench.held

    on_benches(play)


@pytest.mark.certifies(139)
def test_a_delivery_that_races_the_hold_asks_for_it_again_and_is_deferred() -> None:
    async def play(bench: Bench) -> None:
        await bench.open()
        bench.holds.clear()
        step = Holds(bench, bench.runs.holding)
        work = work_of(message("m1", bench.clock.now()))
        bench.broker.shelves.down = True  # nothing is read to know it
        outcome = await step(work)
        assert isinstance(outcome, Defer) and bench.held
        bench.broker.shelves.down = False
        await bench.runs.completed("dev", "r1")
        await bench.told()
        assert await step(work) is None and work.outcome(Ack()) == Ack()

    on_benches(play)
