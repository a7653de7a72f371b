"""Turns that suspend, on whole nodes on the twin: hours of a run cost no wall time, and nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from crewlet import topics
from crewlet.coordination.store import LEASES, STATUS, Bucket
from crewlet.events import catalogue as types
from tests.node.operated import Operated, on_nodes
from tests.node.suspended import Worker, holds, runs, say, until, values, waiting


@pytest.mark.certifies(17, 137)
def test_a_turn_suspends_and_goes_on_with_the_result_of_its_run() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        asked = await say(node, "suspend r1")
        await until(lambda: worker.turns)
        await asyncio.sleep(1)
        assert await holds(node) == ["run"] and await runs(node) == [("r1", "running", True)]
        assert await waiting(node) == (0, 0), "its trigger is worked"
        assert "run r1 holds it" in (await node.ask("why", handle="dev"))[0]["text"]
        await node.node.runs.completed("dev", "r1", "all green")
        await until(lambda: len(worker.turns) == 2)
        await asyncio.sleep(1)
        first, second = worker.turns
        assert second.text == "all green" and second.events[0].type == types.RUN_COMPLETED
        assert second.turn_id == first.turn_id and second.conversation == first.conversation
        assert await holds(node) == [] and await runs(node) == [("r1", "completed", False)]
        assert await values(node, types.AGENT_TURN_COMPLETED, "suspended") == ["r1", None]
        assert await values(node, types.AGENT_TURN_COMPLETED, "outcome") == ["suspend", "ack"]
        assert await values(node, types.AGENT_TURN_STARTED, "resumed") == [False, True]
        (started,) = await node.recorded(types.RUN_STARTED)
        assert started.value("triggers", list, []) == [asked.id]
        (ended,) = await node.recorded(types.RUN_COMPLETED)
        assert ended.value("text", str, "") == "all green"
        assert ended.trace.trace_id == asked.trace.trace_id

    on_nodes(test, turn=worker)


@pytest.mark.certifies(137, 218)
def test_a_run_does_not_count_anew_how_often_its_work_was_handed_on() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1", chain=("ops", "dev"))
        await until(lambda: worker.turns)
        await asyncio.sleep(1)
        await node.node.runs.completed("dev", "r1", "all green")
        await until(lambda: len(worker.turns) == 2)
        counted = [(turn.delegation_depth, turn.delegation_chain) for turn in worker.turns]
        assert counted == [(2, ("ops", "dev"))] * 2

    on_nodes(test, turn=worker)


class Counted:
    """A client of the twin whose calls are counted: by what is asked, and of what."""

    def __init__(self, node: Operated) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        broker, store = node.node.broker, node.node.broker.store
        for verb in ("fetch", "publish"):
            self._count(broker, verb, lambda given: getattr(given, "mailbox", given))
        for verb in ("create", "update", "put", "delete", "record"):
            self._count(store, verb, lambda given: given.name)

    def _count(self, of: Any, verb: str, name: Any) -> None:
        call = getattr(of, verb)

        async def counted(first: Any, *rest: Any, **named: Any) -> Any:
            self.calls[verb, str(name(first))] += 1
            return await call(first, *rest, **named)

        setattr(of, verb, counted)

    def beside(self, *buckets: Bucket) -> set[tuple[str, str]]:
        """What was called, but for these buckets and the other boxes' waits for mail."""
        usual = {bucket.name for bucket in buckets}
        inbox = str(topics.inbox_of("dev"))
        return {
            (verb, of)
            for verb, of in self.calls
            if of not in usual and not (verb == "fetch" and of != inbox)
        }


@pytest.mark.certifies(137, 138, 140)
def test_hours_of_a_run_cost_no_fetch_no_publish_and_no_write() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1")
        await until(lambda: worker.turns)
        mail = [await say(node, f"mail {n}", key=f"chat:{n % 3}") for n in range(12)]
        await node.node.queue.flush(5)
        await asyncio.sleep(60)
        counted = Counted(node)
        await asyncio.sleep(8 * 3600)
        assert counted.beside(LEASES, STATUS) == set()
        assert counted.calls["update", LEASES.name] > 5000, "what is counted is counted"
        assert await waiting(node) == (12, 0)
        await node.node.runs.completed("dev", "r1", "all green")
        await until(lambda: sum(len(turn.events) for turn in worker.turns) == 14)
        worked = [event.id for turn in worker.turns[1:] for event in turn.events]
        for key in range(3):
            of_one = [event.id for n, event in enumerate(mail) if n % 3 == key]
            assert [id for id in worked if id in of_one] == of_one, "in order"
        assert set(worker.attempts) == {1}, "their counts are intact"

    on_nodes(test, turn=worker)


@pytest.mark.certifies(137)
def test_the_hold_goes_with_the_last_run_that_holds() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1")
        await say(node, "suspend r2", key="chat:C2")
        await until(lambda: worker.turns)
        await asyncio.sleep(600)
        assert worker.texts == [["suspend r1"]], "the second waits behind the first"
        await node.node.runs.asks("dev", "r1", "Which branch?")
        await until(lambda: len(worker.turns) == 2)
        await asyncio.sleep(1)
        assert await holds(node) == ["run"], "r2 holds it now"
        await node.node.runs.failed("dev", "r1", "gave up")
        await asyncio.sleep(60)
        assert len(worker.turns) == 2 and await holds(node) == ["run"]
        await node.node.runs.completed("dev", "r2", "fine")
        await until(lambda: len(worker.turns) == 4)
        await asyncio.sleep(1)
        assert await holds(node) == []
        assert sorted(worker.texts[2:]) == [["fine"], ["gave up"]]

    on_nodes(test, turn=worker)


@pytest.mark.certifies(141, 144)
def test_a_parked_run_holds_nothing_and_takes_the_first_answer() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1")
        await until(lambda: worker.turns)
        await say(node, "said before the question")
        await node.node.runs.asks("dev", "r1", "Which branch?")
        await until(lambda: len(worker.turns) == 2)
        await say(node, "of another conversation", key="chat:C2")
        await until(lambda: len(worker.turns) == 3)
        assert worker.texts[1:] == [["said before the question"], ["of another conversation"]]
        answer = await say(node, "main, please")
        later = await say(node, "and hurry")
        await asyncio.sleep(600)
        assert len(worker.turns) == 3 and await holds(node) == ["run"]
        assert await runs(node) == [("r1", "resuming", True)]
        assert await waiting(node) == (1, 0), "the answer is done, what follows waits"
        taken = await node.one("run.take", handle="dev", run_id="r1")
        assert (taken["text"], taken["sender"]) == ("main, please", "ann")
        assert taken == await node.one("run.take", handle="dev", run_id="r1"), "as often as asked"
        assert await runs(node) == [("r1", "running", True)]
        worked = await node.node.ledger.worked("dev", [answer.id])
        assert worked[answer.id].turn_id == "run r1"
        assert await values(node, types.RUN_ANSWERED, "reply_id") == [answer.id]
        assert await values(node, types.RUN_CLARIFICATION_REQUESTED, "question") == [
            "Which branch?"
        ]
        await node.node.runs.completed("dev", "r1", "all green")
        await until(lambda: len(worker.turns) == 4)
        assert worker.texts[3] == [later.value("text", str, ""), "all green"]

    on_nodes(test, turn=worker)


@pytest.mark.certifies(143, 144)
def test_an_answer_that_nobody_took_is_mail_again() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1")
        await until(lambda: worker.turns)
        await node.node.runs.asks("dev", "r1", "Which branch?")
        await asyncio.sleep(1)
        answer = await say(node, "main, please")
        await asyncio.sleep(1)
        await node.node.runs.failed("dev", "r1", "the machine is gone")
        await until(lambda: sum(len(turn.events) for turn in worker.turns) == 3)
        texts = [text for turn in worker.texts[1:] for text in turn]
        assert sorted(texts) == ["main, please", "the machine is gone"]
        assert answer.id in await node.node.ledger.worked("dev", [answer.id])
        await asyncio.sleep(300)  # else the broker knows it for a repetition
        await say(node, "main, please", id=answer.id)
        await asyncio.sleep(60)
        assert await values(node, types.TURN_TRIGGER_SKIPPED, "worked_by") == ["run r1"]
        assert sum(len(turn.events) for turn in worker.turns) == 3, "its own delivery is worked"

    on_nodes(test, turn=worker)


@pytest.mark.certifies(166)
def test_the_first_end_is_the_end_and_is_said_once() -> None:
    worker = Worker()

    async def test(node: Operated) -> None:
        await say(node, "suspend r1")
        await until(lambda: worker.turns)
        said = await node.node.runs.failed("dev", "r1", "the machine is gone")
        await node.node.runs.completed("dev", "r1", "all green")
        await until(lambda: len(worker.turns) == 2)
        await asyncio.sleep(600)
        assert len(worker.turns) == 2 and await node.recorded(types.RUN_COMPLETED) == []
        (failed,) = await node.recorded(types.RUN_FAILED)
        assert failed.timestamp == said.event.timestamp
        assert await node.node.broker.dead_letters(10) == []
        failure = await node.refused("run.fail", handle="dev", run_id="r1")
        assert "failed already" in failure.message

    on_nodes(test, turn=worker)


@pytest.mark.certifies(141)
def test_what_is_said_of_a_run_that_is_not_there_waits_for_it() -> None:
    """The work may be done before the turn that began it has said its name."""
    worker = Worker()

    async def test(node: Operated) -> None:
        await node.node.runs.completed("dev", "r1", "quick")
        await asyncio.sleep(10)
        await say(node, "suspend r1")
        await until(lambda: len(worker.turns) == 2)
        assert worker.texts[1] == ["quick"]

    on_nodes(test, turn=worker)


@pytest.mark.certifies(137)
def test_a_run_goes_with_its_seat_to_another_node() -> None:
    worker = Worker()

    async def test(*nodes: Operated) -> None:
        by_id = {each.node.node_id: each for each in nodes}
        first = by_id[str(nodes[0].node.fleet.owner_of("dev"))]
        (other,) = set(nodes) - {first}
        await say(first, "suspend r1")
        await until(lambda: worker.turns)
        await asyncio.sleep(1)
        await first.one("seat.move", handle="dev", node=other.node.node_id)
        await until(lambda: other.node.fleet.owner_of("dev") == other.node.node_id)
        await say(first, "waits")
        await asyncio.sleep(3600)
        assert worker.texts == [["suspend r1"]]
        assert await holds(other) == ["run"] and await waiting(other) == (1, 0)
        await first.node.runs.completed("dev", "r1", "all green")
        await until(lambda: len(worker.turns) == 2)
        assert worker.texts[1] == ["waits", "all green"]

    on_nodes(test, "n1", "n2", turn=worker)


def test_a_turn_that_suspends_again_is_still_for_what_woke_it_first() -> None:
    """Whoever waits for its answer finds it by that, however many runs later."""
    worker = Worker()

    async def test(node: Operated) -> None:
        asked = await say(node, "suspend r1")
        await until(lambda: worker.turns)
        await node.node.runs.completed("dev", "r1", "suspend r2")
        await until(lambda: len(worker.turns) == 2)
        await node.node.runs.completed("dev", "r2", "all green")
        await until(lambda: len(worker.turns) == 3)
        between = worker.turns[1].events[0].id
        (last,) = [event for event in worker.turns[2].events if event.body == "all green"]
        assert list(last.metadata["triggers"]) == [asked.id, between]
        assert len({turn.turn_id for turn in worker.turns}) == 1

    on_nodes(test, turn=worker)
