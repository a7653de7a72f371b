"""From a partition to a settled turn: what runs, what is skipped, and what the record says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from inbound_bench import Bench, event, on_a_bench, partition

from actors.delivery import Ack, Defer, Nak, Outcome
from crewlet import topics
from crewlet.company import Company, Seat
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted, TurnTriggerSkipped
from crewlet.inbound.completions import LEDGER_TRIES
from crewlet.inbound.dispatch import Dispatch
from crewlet.inbound.outages import Outages
from crewlet.inbound.running import Turns
from crewlet.inbound.services import Services
from crewlet.inbound.steps.worked import ALREADY_WORKED
from crewlet.inbound.work import AtWork
from crewlet.runs.runs import Runs
from crewlet.turn import Turn

SEAT = Seat(handle="dev", name="Developer", agent_id="a-1")
Handle = Callable[[Turn], Awaitable[Outcome]]


class Desk:
    """A seat's dispatch on a bench, with a handler that remembers its turns."""

    def __init__(self, bench: Bench, handle: Handle | None = None, most: int = 4) -> None:
        self.bench = bench
        self.turns = Turns(most)
        self.worked: list[Turn] = []
        self._handle = handle
        self.held: list[tuple[str, str]] = []
        self.runs = Runs(bench.client.store, bench.queue, bench.ledger, self, bench.clock, "n1")
        self.dispatch = Dispatch(
            lambda: AtWork(SEAT, self.handler, 60.0),
            Services(
                company=lambda: Company(name="Acme"),
                node_id="n1",
                queue=bench.queue,
                ledger=bench.ledger,
                followers=bench.followers,
                turns=self.turns,
                clock=bench.clock,
                brakes=self,
                outages=Outages(self, bench.queue, bench.clock),
                runs=self.runs,
            ),
        )

    async def hold(self, handle: str, name: str) -> bool:
        self.held.append((handle, name))
        return True

    async def lift(self, handle: str, name: str) -> bool:
        self.held.remove((handle, name))
        return True

    async def handler(self, turn: Turn) -> Outcome:
        self.worked.append(turn)
        return await self._handle(turn) if self._handle else Ack("done")

    async def run(self, *events: Event, count: int | None = 1) -> Outcome:
        return await self.dispatch.run(partition(*events, count=count))

    @property
    def ids(self) -> list[list[str]]:
        return [[one.id for one in turn.events] for turn in self.worked]

    async def started(self) -> list[AgentTurnStarted]:
        found = await self.bench.recorded(types.AGENT_TURN_STARTED)
        return [one.read(AgentTurnStarted) for one in found]

    async def completed(self) -> list[AgentTurnCompleted]:
        found = await self.bench.recorded(types.AGENT_TURN_COMPLETED)
        return [one.read(AgentTurnCompleted) for one in found]

    async def skipped(self) -> list[TurnTriggerSkipped]:
        found = await self.bench.recorded(types.TURN_TRIGGER_SKIPPED)
        return [one.read(TurnTriggerSkipped) for one in found]


def at_a_desk(play: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
    async def main(bench: Bench) -> None:
        await play(Desk(bench, **options))

    on_a_bench(main)


def returns(outcome: Outcome) -> Handle:
    async def handle(_: Turn) -> Outcome:
        return outcome

    return handle


def raises(error: BaseException) -> Handle:
    async def handle(_: Turn) -> Outcome:
        raise error

    return handle


# -- before the turn ------------------------------------------------------------------


@pytest.mark.certifies(88)
def test_the_same_event_twice_is_one_constituent() -> None:
    async def play(desk: Desk) -> None:
        assert await desk.run(event("A"), event("B"), event("A")) == Ack("done")
        assert desk.ids == [["A", "B"]]
        assert [one.triggers for one in await desk.started()] == [("A", "B")]

    at_a_desk(play)


@pytest.mark.certifies(86, 89)
def test_what_a_turn_has_worked_is_skipped_and_said_for_each() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A"), event("B"))
        assert await desk.run(event("A"), event("B")) == Ack()
        assert len(desk.worked) == 1
        skips = await desk.skipped()
        assert [skip.trigger_id for skip in skips] == ["A", "B"]
        assert {skip.reason for skip in skips} == {ALREADY_WORKED}
        assert {skip.worked_by for skip in skips} == {desk.worked[0].turn_id}
        assert {skip.agent_role for skip in skips} == {"dev"}

    at_a_desk(play)


@pytest.mark.certifies(90)
def test_of_a_partial_overlap_only_the_rest_runs() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A"), event("B"))
        await desk.run(event("A"), event("B"), event("C"))
        assert desk.ids == [["A", "B"], ["C"]]
        assert len(await desk.skipped()) == 2

    at_a_desk(play)


@pytest.mark.certifies(205)
def test_a_skip_is_found_in_the_triggers_own_trace() -> None:
    async def play(desk: Desk) -> None:
        trigger = event("A")
        await desk.run(trigger)
        await desk.run(trigger)
        (skip,) = await desk.bench.recorded(types.TURN_TRIGGER_SKIPPED)
        assert skip.trace.trace_id == trigger.trace.trace_id
        assert skip.trace.parent_span_id == trigger.trace.span_id

    at_a_desk(play)


@pytest.mark.certifies(91)
def test_a_ledger_that_cannot_be_read_lets_the_work_run() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A"))
        desk.bench.store_down(True)
        running = asyncio.ensure_future(desk.run(event("A")))
        await asyncio.sleep(5.0)
        desk.bench.store_down(False)
        assert await running == Ack("done")
        assert desk.ids == [["A"], ["A"]]

    at_a_desk(play)


# -- recorded before acknowledged -----------------------------------------------------


@pytest.mark.certifies(91)
def test_without_its_row_in_the_ledger_a_turn_is_not_acknowledged() -> None:
    async def play(desk: Desk) -> None:
        desk.bench.store_down(True)
        outcome = await desk.run(event("A"))
        assert isinstance(outcome, Defer)
        assert asyncio.get_running_loop().time() == pytest.approx(LEDGER_TRIES)
        (completed,) = await desk.completed()
        assert (completed.outcome, completed.answer, completed.failed) == ("defer", None, False)
        assert await desk.bench.mail(topics.reflect_of("dev")) == []

    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        await play(Desk(bench))

    on_a_bench(main)


def test_a_row_that_was_written_although_the_answer_was_lost_is_no_failure() -> None:
    async def play(desk: Desk) -> None:
        store = desk.bench.client.store
        create = store.create
        lost = []

        async def lose(bucket: Any, key: str, value: bytes) -> int:
            revision = await create(bucket, key, value)
            if not lost:
                lost.append(key)
                desk.bench.store_down(True)
                asyncio.get_running_loop().call_later(0.5, desk.bench.store_down, False)
                await store.get(bucket, key)
            return revision

        store.create = lose  # type: ignore[method-assign]
        assert await desk.run(event("A"), event("B")) == Ack("done")
        assert set(await desk.bench.ledger.worked("dev", ["A", "B"])) == {"A", "B"}
        assert lost

    at_a_desk(play)


@pytest.mark.parametrize("outcome", [Nak("no"), Defer("later", 9.0)])
def test_a_turn_that_did_not_finish_leaves_no_trace_in_the_ledger(outcome: Outcome) -> None:
    async def play(desk: Desk) -> None:
        assert await desk.run(event("A")) == outcome
        assert await desk.bench.ledger.worked("dev", ["A"]) == {}
        assert await desk.bench.followers.of("chat:C1", at=desk.bench.clock.now()) == ()
        await desk.run(event("A"))
        assert desk.ids == [["A"], ["A"]]

    at_a_desk(play, handle=returns(outcome))


def test_who_worked_a_conversation_is_in_it() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A", key="chat:C1"))
        await desk.run(event("B", key=""))
        assert await desk.bench.followers.of("chat:C1", at=desk.bench.clock.now()) == ("dev",)

    at_a_desk(play)


def test_followers_that_cannot_be_read_cost_no_turn() -> None:
    async def play(desk: Desk) -> None:
        async def unreadable(*_: object, **__: object) -> None:
            from crewlet.errors import StoreUnavailable

            raise StoreUnavailable("the followers do not answer")

        desk.bench.followers.joined = unreadable  # type: ignore[method-assign]
        assert await desk.run(event("A")) == Ack("done")
        assert await desk.bench.ledger.worked("dev", ["A"])

    at_a_desk(play)


# -- what the record says -------------------------------------------------------------


@pytest.mark.certifies(162)
@pytest.mark.parametrize(
    ("handle", "said"),
    [
        (returns(Ack("hello")), ("ack", "hello", "", False)),
        (returns(Ack()), ("ack", None, "", False)),
        (returns(Nak("no")), ("nak", None, "no", True)),
        (returns(Defer("busy")), ("defer", None, "busy", False)),
        (raises(RuntimeError("boom")), ("nak", None, "RuntimeError: boom", True)),
        (raises(OSError("\ud800")), ("nak", None, "OSError: ?", True)),
        (returns(Ack("\udcff!")), ("ack", "?!", "", False)),
        (returns(Nak("\ud800")), ("nak", None, "?", True)),
    ],
    ids=["ack", "no answer", "nak", "defer", "raises", "raises odd", "odd answer", "odd reason"],
)
def test_every_turn_that_started_ends_in_the_record(
    handle: Handle, said: tuple[str, str | None, str, bool]
) -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A"), count=3)
        (started,), (completed,) = await desk.started(), await desk.completed()
        assert started.turn_id == completed.turn_id == desk.worked[0].turn_id
        assert started.triggers == completed.triggers == ("A",)
        assert (started.attempt, started.agent_id, started.agent_role) == (3, "a-1", "dev")
        assert started.conversation_key == completed.conversation_key == "chat:C1"
        assert said == (completed.outcome, completed.answer, completed.reason, completed.failed)
        assert desk.turns.all_running() == []

    at_a_desk(play, handle=handle)


@pytest.mark.certifies(162)
def test_a_turn_that_is_cut_ends_in_the_record_too() -> None:
    async def forever(_: Turn) -> Outcome:
        await asyncio.sleep(10**9)
        return Ack()

    async def play(desk: Desk) -> None:
        running = asyncio.ensure_future(desk.run(event("A")))
        await asyncio.sleep(7.0)
        assert desk.turns.running("dev") is not None
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await desk.bench.queue.flush(1.0)
        (completed,) = await desk.completed()
        assert (completed.outcome, completed.duration_s) == ("defer", 7.0)
        assert desk.turns.all_running() == []
        assert await desk.bench.ledger.worked("dev", ["A"]) == {}

    at_a_desk(play, handle=forever)


@pytest.mark.certifies(162)
def test_a_cut_while_the_end_is_being_recorded_does_not_lose_it() -> None:
    async def play(desk: Desk) -> None:
        async def finish(_: Turn) -> Outcome:
            desk.bench.broker.down = True
            return Nak("no")

        desk._handle = finish
        running = asyncio.ensure_future(desk.run(event("A")))
        await asyncio.sleep(1.0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        desk.bench.broker.down = False
        assert await desk.bench.queue.flush(5.0)
        assert [one.outcome for one in await desk.completed()] == ["nak"]

    at_a_desk(play)


@pytest.mark.certifies(202)
def test_the_turn_is_a_child_of_what_woke_it() -> None:
    async def play(desk: Desk) -> None:
        first, second = event("A"), event("B")
        await desk.run(first, second)
        (started,) = await desk.bench.recorded(types.AGENT_TURN_STARTED)
        (completed,) = await desk.bench.recorded(types.AGENT_TURN_COMPLETED)
        assert started.trace.parent_span_id == first.trace.span_id
        assert started.trace.traceparent == desk.worked[0].traceparent
        assert completed.trace.parent_span_id == started.trace.span_id

    at_a_desk(play)


def test_a_record_that_nobody_keeps_does_not_stop_the_turn() -> None:
    async def main(bench: Bench) -> None:
        class Silent(type(bench.queue)):  # type: ignore[misc]
            async def publish(self, *_: object, **__: object) -> None:
                from crewlet.errors import PublishUnknown

                raise PublishUnknown("m", "t", 1.0)

        bench.queue.__class__ = Silent
        assert await Desk(bench).run(event("A")) == Ack("done")

    on_a_bench(main)


@pytest.mark.certifies(18)
def test_a_finished_turn_goes_to_reflection_with_its_answer() -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        desk = Desk(bench)
        await desk.run(event("A"))
        (reflected,) = await bench.mail(topics.reflect_of("dev"))
        assert reflected.type == types.TURN_COMPLETED
        assert reflected.value("turn", Turn, None) == desk.worked[0]  # type: ignore[arg-type]
        assert reflected.value("answer", str, "") == "done"

    on_a_bench(main)


# -- the gate -------------------------------------------------------------------------


@pytest.mark.certifies(95)
def test_turns_over_the_nodes_bound_wait_in_the_process() -> None:
    async def slow(_: Turn) -> Outcome:
        await asyncio.sleep(10.0)
        return Ack("done")

    async def play(desk: Desk) -> None:
        running = [asyncio.ensure_future(desk.run(event(id))) for id in "ABC"]
        await asyncio.sleep(1.0)
        assert len(desk.worked) == len(desk.turns.all_running()) == 1
        assert await asyncio.gather(*running) == [Ack("done")] * 3
        assert asyncio.get_running_loop().time() == 30.0
        assert len(await desk.started()) == len(await desk.completed()) == 3

    at_a_desk(play, handle=slow, most=1)


@pytest.mark.certifies(95, 162)
def test_a_turn_that_is_cut_at_the_gate_never_started() -> None:
    async def slow(_: Turn) -> Outcome:
        await asyncio.sleep(10.0)
        return Ack("done")

    async def play(desk: Desk) -> None:
        first, second = (asyncio.ensure_future(desk.run(event(id))) for id in "AB")
        await asyncio.sleep(1.0)
        second.cancel()
        await first
        assert len(await desk.started()) == len(await desk.completed()) == 1

    at_a_desk(play, handle=slow, most=1)
