"""`crewlet.testing.simulate`: what an embedder's own handler and company are told."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from crewlet.company import parse_company
from crewlet.errors import AskRefused
from crewlet.testing import simulate
from crewlet.testing.simulation import Different, Promise, Record
from crewlet.turn import Suspend, Turn, Unavailable

COMPANY = parse_company("""
name: Company T
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
""")


def quick(turn: Turn) -> None:
    return None


# -- how long it takes, and that it fails ------------------------------------------------------


@pytest.mark.parametrize("turn_s", [3.0, 12.0, 59.0])
def test_a_handler_that_takes_its_time_breaks_nothing(turn_s: float):
    async def slow(turn: Turn) -> None:
        await asyncio.sleep(turn_s)

    report = simulate(COMPANY, slow, seeds=range(3), minutes=0.5)
    assert report.summary.violations == [] and report.failures == {}


def test_what_the_ledger_has_keeps_its_conversations_place():
    """It was once written down behind the turn that it made way for, and S17 broken by it."""

    async def slow(turn: Turn) -> None:
        await asyncio.sleep(2.0)

    assert simulate(COMPANY, slow, seeds=[5], minutes=2).summary.seeds == 1


def test_mail_that_waits_in_a_busy_seat_s_hands_is_in_somebody_s_hands():
    """An excuse for a loss ran out while its holder, long since back, was at an earlier turn."""

    async def slow(turn: Turn) -> None:
        await asyncio.sleep(random.choice((0.1, 2, 10, 40)))

    three = parse_company("name: T\nroles: [{name: A}, {name: B}, {name: C}]\n")
    assert simulate(three, slow, seeds=[105], minutes=2).summary.seeds == 1


def test_a_handler_that_never_ends_is_timed_out_as_on_a_node():
    async def never(turn: Turn) -> None:
        await asyncio.sleep(1e9)

    report = simulate(COMPANY, never, seeds=[0], minutes=0.3)
    assert report.summary.sometimes["dead_letter"] > 0


def test_a_handler_that_always_fails_breaks_nothing_and_is_told_of():
    def failing(turn: Turn) -> None:
        raise LookupError("no such thing")

    report = simulate(COMPANY, failing, seeds=range(2), minutes=0.5)
    assert report.summary.sometimes["dead_letter"] > 0
    assert set(report.failures) == {"LookupError: no such thing"}
    assert report.failures["LookupError: no such thing"] > 25


def test_what_the_handler_raised_stands_beside_what_was_broken():
    def failing(turn: Turn) -> None:
        raise LookupError("no such thing")

    def no_failure(record: Record) -> str | None:
        return "a turn failed" if record.kind == "turn_end" and record.code == "nak" else None

    with pytest.raises(Promise) as caught:
        simulate(COMPANY, failing, seeds=[5], minutes=0.5, invariants={"mine": no_failure})
    text = str(caught.value)
    assert text.startswith("seed 5, profile swarm, crewlet ")
    assert "mine at " in text and "it needs no fault at all" in text
    assert "turns failed, 1 times: LookupError: no such thing" in text
    assert 'raise LookupError("no such thing")' in text
    assert "again: simulate(company, handler, seeds=[5], profile='swarm', minutes=0.5)" in text


def test_an_outcome_that_is_none_is_told_of():
    report = simulate(COMPANY, lambda turn: 17, seeds=[0], minutes=0.2)
    (reason,) = report.failures
    assert reason.startswith("the handler returned int")


def test_a_question_to_a_colleague_is_refused_and_told_of():
    async def asking(turn: Turn) -> Any:
        return await turn.ask("ops", "Is it well?")

    report = simulate(COMPANY, asking, seeds=[0], minutes=0.3)
    assert [text.partition(":")[0] for text in report.failures] == [AskRefused.__name__]


# -- what a simulated process has not ----------------------------------------------------------


async def _thread(turn: Turn) -> None:
    await asyncio.to_thread(print)


async def _socket(turn: Turn) -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def _child(turn: Turn) -> None:
    await asyncio.create_subprocess_exec("true")


async def _run(turn: Turn) -> Suspend:
    return Suspend("run-1")


async def _outage(turn: Turn) -> Unavailable:
    return Unavailable("no quota")


@pytest.mark.parametrize(
    ("handler", "word"),
    [
        (_thread, "run_in_executor"),
        (_socket, "getaddrinfo|create_connection"),
        (_child, "subprocess_exec"),
        (_run, "Suspend"),
        (_outage, "Unavailable"),
    ],
)
def test_what_cannot_be_simulated_is_named_at_once(handler: Callable[[Turn], Any], word: str):
    with pytest.raises(Promise, match=f"handler at .*({word})") as caught:
        simulate(COMPANY, handler, seeds=[0], minutes=0.3)
    assert caught.value.outcome.violations[0].invariant == "handler"


# -- the same run twice ------------------------------------------------------------------------


def test_chance_from_the_module_random_is_the_seeds():
    async def chancy(turn: Turn) -> None:
        await asyncio.sleep(random.random())
        if random.random() < 0.2:
            raise ValueError("bad luck")

    state = random.getstate()
    first, second = (simulate(COMPANY, chancy, seeds=[1, 2], minutes=0.3) for _ in range(2))
    assert first.summary.trace_hash == second.summary.trace_hash
    assert random.getstate() == state


def test_a_handler_that_is_another_one_each_time_is_found():
    count = itertools.count()

    async def counting(turn: Turn) -> None:
        await asyncio.sleep(next(count) * 0.001)

    with pytest.raises(Different, match=r"seed 3 is two different runs.*make=") as caught:
        simulate(COMPANY, counting, seeds=[3], minutes=0.3)
    assert "complete_ok" in str(caught.value)


def test_with_make_it_is_the_same_each_time():
    def make() -> Any:
        count = itertools.count()

        async def counting(turn: Turn) -> None:
            await asyncio.sleep(next(count) * 0.001)

        return counting, {}

    assert simulate(COMPANY, make=make, seeds=[3], minutes=0.3).summary.seeds == 1


# -- invariants of his own ---------------------------------------------------------------------


def test_an_invariant_can_join_what_it_sees_with_what_the_handler_saw_and_judge_the_end():
    ends = []

    def make() -> Any:
        asked, worked = set(), set()

        def handler(turn: Turn) -> None:
            worked.update(event.id for event in turn.events)

        def all_was_worked(record: Record) -> str | None:
            if record.kind == "pub_ack" and record.seat in ("dev", "ops"):
                asked.add(record.msg)
            if record.kind == "over":
                ends.append(len(asked))
                return None if asked <= worked else f"never worked: {sorted(asked - worked)}"
            return None

        return handler, {"all was worked": all_was_worked}

    simulate(COMPANY, make=make, seeds=range(2), minutes=0.5)
    assert len(ends) == 3 and min(ends) > 5  # the first seed is played twice


def test_an_invariant_that_says_no_sentence_or_raises_is_named():
    def predicate(record: Record) -> Any:
        return record.kind == "turn_start"

    def broken(record: Record) -> Any:
        return record.kind.no_such

    with pytest.raises(TypeError, match="'mine' has to say None or a sentence"):
        simulate(COMPANY, quick, seeds=[0], minutes=0.2, invariants={"mine": predicate})
    with pytest.raises(AttributeError) as caught:
        simulate(COMPANY, quick, seeds=[7], minutes=0.2, invariants={"mine": broken})
    assert "the invariant 'mine', on seed 7" in caught.value.__notes__[0]


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seeds": 3}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": float("nan")}, "minutes"),
        ({"profile": "reads"}, "profile"),
        ({"texts": ()}, "texts"),
        ({"handler": None}, "handler or make"),
        ({"make": lambda: (quick, {})}, "handler or make"),
        ({"handler": 17}, "handler"),
        ({"invariants": [quick]}, "invariants"),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        simulate(COMPANY, **{"handler": quick, **given})


def test_a_company_without_seats_has_nothing_to_simulate():
    nobody = parse_company("name: Nobody\nroles: [{name: Boss, handle: boss, kind: human}]\n")
    with pytest.raises(ValueError, match="no agent"):
        simulate(nobody, quick, seeds=[0])


def test_speeds_are_measured():
    summary = simulate(COMPANY, quick, seeds=[0], minutes=0.3).summary
    assert 0 < summary.virtual_per_real < 1_000_000
