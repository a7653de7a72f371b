"""The machine of a run's row: what may happen to it, once each, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crewlet.runs.row import (
    OVER,
    Adopted,
    Asked,
    Ended,
    HandedBack,
    IllegalInput,
    Input,
    Notice,
    Origin,
    Replied,
    Reply,
    Run,
    State,
    Suspended,
    Taken,
    Told,
    Withdrawn,
    opened,
    step,
)

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def suspended(turn: str = "t1", epoch: int = 3) -> Suspended:
    origin = Origin(
        turn_id=turn, node="n1", epoch=epoch, triggers=("e1",), conversation_identity="chat:C1"
    )
    return Suspended(origin=origin, at=START)


def notice(id: str, minute: int = 0) -> Notice:
    return Notice(id, START + timedelta(minutes=minute), f"text of {id}")


def a_run(*inputs: Input) -> Run:
    run = opened("dev", "r1", suspended())
    for one in inputs:
        run = step(run, one)
    return run


ASKED = Asked(notice("q1"))
REPLIED = Replied(Reply("m1", "{}"))
DONE = Ended(notice("c1"))

INPUTS = st.one_of(
    st.builds(suspended, st.sampled_from(["t1", "t2"]), st.integers(2, 4)),
    st.builds(Adopted, st.sampled_from(["n1", "n2"])),
    st.builds(Asked, st.sampled_from([notice("q1"), notice("q2", 1)])),
    st.builds(Replied, st.sampled_from([Reply("m1", "{}"), Reply("m2", "{}")])),
    st.just(Taken()),
    st.builds(Ended, st.sampled_from([notice("c1"), notice("c2")]), st.booleans()),
    st.just(HandedBack()),
    st.just(Told()),
    st.just(Withdrawn(notice("w1"))),
)


class TestTheWay:
    def test_a_run_holds_until_its_end_is_told(self) -> None:
        assert a_run().holds
        assert a_run(DONE).holds, "its result is not in the inbox yet"
        over = a_run(DONE, Told())
        assert not over.holds and over.state is State.COMPLETED

    @pytest.mark.certifies(141)
    def test_parked_on_a_question_it_holds_nothing_and_with_a_reply_again(self) -> None:
        assert not a_run(ASKED).holds
        assert a_run(ASKED, REPLIED).holds
        assert a_run(ASKED, REPLIED).state is State.RESUMING
        taken = a_run(ASKED, REPLIED, Taken())
        assert taken.state is State.RUNNING and taken.outbox is None and taken.reply is not None

    @pytest.mark.certifies(141)
    def test_the_first_reply_is_the_one(self) -> None:
        with pytest.raises(IllegalInput, match="has an answer that nobody took"):
            a_run(ASKED, REPLIED, Replied(Reply("m2", "{}")))

    @pytest.mark.certifies(143)
    @pytest.mark.parametrize("ended", [DONE, Ended(notice("f1"), failed=True)])
    def test_a_reply_that_nobody_took_keeps_an_end_from_being_told(self, ended: Ended) -> None:
        run = a_run(ASKED, REPLIED, ended)
        assert run.outbox == REPLIED.reply
        with pytest.raises(IllegalInput):
            step(run, Told())
        assert step(step(run, HandedBack()), Told()).told

    @pytest.mark.certifies(166)
    def test_the_first_end_stands(self) -> None:
        run = a_run(Ended(notice("f1"), failed=True))
        assert step(run, Ended(notice("f1"), failed=True)) == run
        with pytest.raises(IllegalInput, match="has failed"):
            step(run, DONE)
        assert run.end == notice("f1")

    def test_a_turn_that_lost_its_seat_does_not_take_a_run_from_its_holder(self) -> None:
        run = a_run(suspended("t2", epoch=4))
        with pytest.raises(IllegalInput):
            step(run, suspended("t1", epoch=3))

    def test_a_run_that_is_over_may_begin_another_life_once_that_was_told(self) -> None:
        with pytest.raises(IllegalInput, match="try again"):
            a_run(DONE, suspended("t2"))
        again = a_run(DONE, Told(), suspended("t2"))
        assert again.state is State.RUNNING and again.end is None and not again.told

    def test_a_withdrawn_run_is_told_to_nobody(self) -> None:
        run = a_run(Withdrawn(notice("w1")))
        assert (run.state, run.told, run.holds) == (State.FAILED, True, False)


class TestAlways:
    @given(st.lists(INPUTS, max_size=12))
    def test_what_may_not_happen_changes_nothing_and_what_has_happened_too(
        self, inputs: list[Input]
    ) -> None:
        run = a_run()
        for one in inputs:
            before = msgspec.json.encode(run)
            try:
                after = step(run, one)
            except IllegalInput:
                assert msgspec.json.encode(run) == before
                continue
            assert step(after, one) == after, "a second time is no second happening"
            run = after

    @given(st.lists(INPUTS, max_size=12))
    def test_no_reply_is_lost_and_no_end_is_taken_back(self, inputs: list[Input]) -> None:
        run, recorded, left = a_run(), set[str](), set[str]()
        for one in inputs:
            before = run
            try:
                run = step(run, one)
            except IllegalInput:
                continue
            if isinstance(one, Replied) and run != before:
                recorded.add(one.reply.event_id)
            if before.outbox is not None and run.outbox != before.outbox:
                assert isinstance(one, Taken | HandedBack), "a reply leaves by these two ways only"
                left.add(before.outbox.event_id)
            if before.end is not None and not before.told:
                assert run.end == before.end
            assert not (run.told and run.outbox), "what is told has nothing left to give"
            assert run.over == (run.state in OVER) == (run.end is not None)
        assert recorded == left | ({run.outbox.event_id} if run.outbox else set())

    @given(st.lists(INPUTS, max_size=12))
    def test_a_row_survives_its_bytes(self, inputs: list[Input]) -> None:
        run = a_run()
        for one in inputs:
            try:
                run = step(run, one)
            except IllegalInput:
                continue
        assert msgspec.json.decode(msgspec.json.encode(run), type=Run) == run

    def test_adopted_changes_who_has_it_and_nothing_else(self) -> None:
        run = a_run(ASKED, REPLIED)
        assert step(run, Adopted("n2")) == replace(run, node="n2")
