"""Runs between nodes: who may write, what a node that had lost its seat leaves, what is told."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from runs_bench import Bench, message, on_benches, work_of

from actors.delivery import Nak, Partition
from actors.tenure import Fenced
from crewlet import topics
from crewlet.coordination.store import RUNS
from crewlet.events import catalogue as types
from crewlet.inbound.letters import read_alone
from crewlet.inbound.steps.answers import Answers
from crewlet.runs.live import NoRun
from crewlet.runs.row import IllegalInput, State

_ONE = timedelta(seconds=1)


class TestANodeThatLostItsSeat:
    @pytest.mark.certifies(137)
    def test_its_row_goes_where_nobody_has_taken_it_over(self) -> None:
        async def play(old: Bench) -> None:
            await old.runs.withdraw(await old.open())
            run = await old.row()
            assert run.told and not run.holds and old.runs.of("dev") == []

        on_benches(play)

    def test_its_row_stays_where_its_successor_has_it(self) -> None:
        async def play(old: Bench, new: Bench) -> None:
            opened = await old.open()
            await new.runs.recover("dev")
            await old.runs.withdraw(opened)
            assert (await new.row()).holds and new.runs.holds_of("dev") == ("run",)
            assert (await new.ledger.worked("dev", ["e1"]))["e1"].turn_id == "t1"

        on_benches(play, "n1", "n2")

    def test_one_of_the_same_name_is_not_taken_from_the_successor(self) -> None:
        async def play(old: Bench, new: Bench) -> None:
            await new.open(turn="t2", epoch=2)
            with pytest.raises(Fenced):
                await old.open(turn="t1", epoch=1)
            assert (await new.row()).origin.turn_id == "t2"

        on_benches(play, "n1", "n2")

    def test_what_was_there_before_it_suspended_is_there_again(self) -> None:
        async def play(old: Bench) -> None:
            await old.open()
            await old.runs.asks("dev", "r1", "Which branch?")
            await old.told()
            opened = await old.open(turn="t2")
            assert (await old.row()).state is State.RUNNING
            await old.runs.withdraw(opened)
            assert (await old.row()).state is State.ASKING

        on_benches(play)

    def test_an_orphan_is_withdrawn_by_whoever_finds_that_its_triggers_were_anothers(self) -> None:
        async def play(old: Bench, new: Bench) -> None:
            await old.open()
            await old.ledger.record("dev", ["e1"], turn_id="t2", node="n2", at=old.clock.now())
            await new.runs.recover("dev")
            assert new.runs.holds_of("dev") == () and (await new.row()).told
            assert await new.inbox() == []

        on_benches(play, "n1", "n2")

    def test_an_orphan_of_a_turn_that_went_on_elsewhere_has_that_turns_name(self) -> None:
        """A turn that a run had suspended goes on under its id, on whatever node."""

        async def play(old: Bench, new: Bench) -> None:
            await old.open()
            await new.ledger.record("dev", ["e1"], turn_id="t1", node="n2", at=old.clock.now())
            await new.runs.recover("dev")
            assert new.runs.holds_of("dev") == () and (await new.row()).told

        on_benches(play, "n1", "n2")

    def test_a_run_that_was_taken_over_is_no_orphan_to_the_next(self) -> None:
        async def play(old: Bench, new: Bench) -> None:
            await old.open()
            for bench in (new, old, new):
                await bench.runs.recover("dev")
                assert bench.runs.holds_of("dev") == ("run",)

        on_benches(play, "n1", "n2")


class TestTheEnd:
    @pytest.mark.certifies(166)
    def test_two_finishers_say_the_same(self) -> None:
        async def play(first: Bench, second: Bench) -> None:
            await first.open()
            await second.runs.recover("dev")
            await first.runs.failed("dev", "r1", "the machine is gone")
            (delivery,) = await first.mail(topics.control_of("dev"))
            partition = Partition("k", (read_alone(delivery),))
            await asyncio.gather(first.runs.control(partition), second.runs.control(partition))
            assert len(await first.inbox()) == 1
            assert len({event.id for event in await first.recorded(types.RUN_FAILED)}) == 1
            assert not first.held and not second.held

        on_benches(play, "n1", "n2")

    def test_an_outage_of_the_store_costs_an_end_no_delivery(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.open()
            await bench.runs.completed("dev", "r1", "all green")
            bench.broker.shelves.down = True
            working = asyncio.create_task(bench.told())
            await asyncio.sleep(120)
            assert not working.done()
            bench.broker.shelves.down = False
            await working
            assert [event.value("text", str, "") for event in await bench.inbox()] == ["all green"]
            assert not bench.held

        on_benches(play)

    def test_what_is_over_can_be_looked_at_for_a_day(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.open()
            await bench.runs.completed("dev", "r1")
            await bench.told()
            await asyncio.sleep(23 * 3600)
            await bench.open("r2", turn="t2")
            await bench.runs.completed("dev", "r2")
            await bench.told()
            assert [run.run_id for run in await bench.runs.all("dev")] == ["r1", "r2"]
            await asyncio.sleep(23 * 3600)
            await bench.runs.recover("dev")
            assert [run.run_id for run in await bench.runs.all("dev")] == ["r2"]
            assert len(await bench.client.store.list(RUNS)) == 1

        on_benches(play)

    def test_a_seat_that_is_no_more_has_no_runs(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.open()
            await bench.runs.asks("dev", "r1", "Which branch?")
            await bench.told()
            await Answers(bench.runs)(work_of(message("m1", bench.clock.now() + _ONE)))
            await bench.open("r2", turn="t2")
            await bench.runs.end_all("dev", "its seat is no more")
            assert all(run.told for run in await bench.runs.all("dev"))
            assert len(await bench.inbox()) == 3, "the answer, and two ends"
            assert not bench.held

        on_benches(play)

    @pytest.mark.certifies(143)
    def test_nor_where_its_inbox_went_before_them(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.open()
            await bench.runs.asks("dev", "r1", "Which branch?")
            await bench.told()
            await Answers(bench.runs)(work_of(message("m1", bench.clock.now() + _ONE)))
            await bench.client.delete(topics.inbox_of("dev"))
            await bench.runs.end_all("dev", "its seat is no more")
            assert all(run.told for run in await bench.runs.all("dev"))
            assert not bench.held

        on_benches(play)


class TestControl:
    def test_a_run_that_is_not_there_is_tried_again(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.runs.completed("dev", "r1")
            (delivery,) = await bench.mail(topics.control_of("dev"))
            outcome = await bench.runs.control(Partition("k", (read_alone(delivery),)))
            assert isinstance(outcome, Nak) and "no run 'r1' of dev" in outcome.reason

        on_benches(play)

    def test_what_nobody_asked_for_cannot_be_taken(self) -> None:
        async def play(bench: Bench) -> None:
            with pytest.raises(NoRun):
                await bench.runs.take("dev", "r1")
            await bench.open()
            with pytest.raises(IllegalInput, match="there is no reply to take"):
                await bench.runs.take("dev", "r1")

        on_benches(play)

    @pytest.mark.certifies(144)
    def test_the_ledger_has_an_answer_before_its_worker_has_it(self) -> None:
        async def play(bench: Bench) -> None:
            await bench.open()
            await bench.runs.asks("dev", "r1", "Which branch?")
            await bench.told()
            await Answers(bench.runs)(work_of(message("m1", bench.clock.now() + _ONE)))
            assert await bench.ledger.worked("dev", ["m1"]) == {}
            seen: list[bool] = []
            update = bench.client.store.update

            async def watched(*args: object) -> int:
                seen.append("m1" in await bench.ledger.worked("dev", ["m1"]))
                return await update(*args)  # type: ignore[arg-type]

            bench.client.store.update = watched  # type: ignore[method-assign]
            await bench.runs.take("dev", "r1")
            assert seen == [True]

        on_benches(play)
