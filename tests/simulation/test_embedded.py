"""`crewlet.testing.simulate`: what an embedder's own handler and company are told."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crewlet.company import parse_company
from crewlet.errors import AskRefused, ConfigError
from crewlet.testing import simulate
from crewlet.testing.simulation import Different, Promise, Record, play
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


def test_a_coroutine_that_a_node_would_not_await_is_not_awaited_here_either():
    async def answer(turn: Turn) -> None:
        return None

    report = simulate(COMPANY, lambda turn: answer(turn), seeds=[0], minutes=0.2)
    assert list(report.failures) == [
        "the handler returned a coroutine: declare it with `async def`"
    ]


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


EVERYWHERE = ("ensure", "fault", "grant", "deliver", "got", "turn_start", "complete_ok", "ack")
"""Written by the world, by a node in the middle of a turn, and by the broker as it answers."""


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_what_an_invariant_raises_is_raised_wherever_its_record_was_written(kind: str):
    """In a turn it was once a failure of the handler, and at the broker an answer to the node."""

    def broken(record: Record) -> None:
        if record.kind == kind:
            raise LookupError("a bug of mine")

    with pytest.raises(LookupError, match="a bug of mine") as caught:
        simulate(COMPANY, quick, seeds=[7], minutes=0.2, invariants={"mine": broken})
    (note,) = caught.value.__notes__
    assert note.startswith("in the invariant 'mine', on seed 7: ") and f" {kind} " in note


@pytest.mark.parametrize("judge", [pytest.fail, pytest.skip])
def test_so_is_what_a_test_is_ended_by(judge: Callable[[str], None]):
    """No Exception, and for a turn's code one more thing that its handler came to."""

    def broken(record: Record) -> None:
        if record.kind == "turn_start":
            judge("as I say")

    with pytest.raises(judge.Exception, match="as I say"):  # type: ignore[attr-defined]
        simulate(COMPANY, quick, seeds=[7], minutes=0.2, invariants={"mine": broken})


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_an_assertion_of_an_invariant_is_a_promise_that_is_broken(kind: str):
    def told(record: Record) -> None:
        assert record.kind != kind, f"no {kind}, please"

    with pytest.raises(Promise, match=f"mine at .*: no {kind}, please") as caught:
        simulate(COMPANY, quick, seeds=[7], minutes=0.2, invariants={"mine": told})
    assert "it needs no fault at all" in str(caught.value)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [(__file__, "raise AssertionError$"), ("nowhere.py", "silent failed an assertion$")],
)
def test_an_assertion_that_says_nothing_is_told_by_its_line(file: str, sentence: str):
    def silent(record: Record) -> None:
        if record.kind == "grant":
            raise AssertionError

    silent.__code__ = silent.__code__.replace(co_filename=file)
    with pytest.raises(Promise) as caught:
        simulate(COMPANY, quick, seeds=[7], minutes=0.2, invariants={"mine": silent})
    assert re.search(f"mine at .*: {sentence}", str(caught.value), re.MULTILINE)


def test_an_invariant_that_says_no_sentence_is_named():
    def predicate(record: Record) -> Any:
        return record.kind == "turn_start" or None

    with pytest.raises(TypeError, match="'mine' has to say None or a sentence, not True"):
        simulate(COMPANY, quick, seeds=[0], minutes=0.2, invariants={"mine": predicate})


def test_the_fewest_decisions_are_told_with_their_node_and_break_it_again_by_themselves():
    """The same decisions, played again, and no line of the text is a riddle."""

    def nobody_is_killed(record: Record) -> None:
        killed = (record.kind, record.code) == ("fault", "crash") and record.key != "drill"
        assert not killed, f"{record.node} was killed"

    mine = {"mine": nobody_is_killed}
    with pytest.raises(Promise, match=r"mine at .* was killed") as caught:
        simulate(COMPANY, quick, seeds=range(9), minutes=1, invariants=mine)
    (decision,) = caught.value.plan.decisions
    node, length_s = f"n{decision.node + 1}", f"{decision.length_s:g}"
    assert f" {decision.kind} {node} for {length_s} s" in str(caught.value)
    again = play(caught.value.plan, COMPANY, quick, seconds=60.0, invariants=mine)
    (broken,) = again.violations
    assert broken.invariant == "mine" and broken.text.startswith(f"{node} was killed")


def test_how_to_play_it_again_names_the_very_minutes_and_what_makes_its_handler():
    def make() -> Any:
        return quick, {"mine": lambda record: "no"}

    with pytest.raises(Promise) as caught:
        simulate(COMPANY, make=make, seeds=[4], minutes=1 / 7)
    line = f"simulate(company, make=make, seeds=[4], profile='swarm', minutes={1 / 7!r})"
    assert str(caught.value).endswith(f"again: {line}")


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seeds": 3}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": "17"}, "seeds='17': a seed is a whole number"),
        ({"seeds": [1, 2.5]}, "which 2.5 is not"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": float("nan")}, "minutes"),
        ({"minutes": "2"}, "minutes='2'"),
        ({"profile": "reads"}, "profile"),
        ({"texts": ()}, "texts"),
        ({"handler": None}, "handler or make"),
        ({"make": lambda: (quick, {})}, "handler or make"),
        ({"handler": 17}, "handler: '17' is not a function"),
        ({"handler": lambda: None}, "must take exactly one argument, the turn"),
        ({"handler": lambda turn, more: None}, "must take exactly one argument, the turn"),
        ({"invariants": [quick]}, "invariants is a mapping"),
        ({"invariants": {"mine": 3}}, "the invariant 'mine' is no function of a record: 3"),
        ({"handler": None, "make": 3}, "make=3 is no function"),
        ({"handler": None, "make": lambda: quick}, "make has to return"),
        ({"handler": None, "make": lambda: (quick, quick)}, "invariants is a mapping"),
        ({"handler": None, "make": lambda: (None, {})}, "handler: 'None' is not a function"),
        ({"company": 3}, "company=3 is no Company, and no path"),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        simulate(**{"company": COMPANY, "handler": quick, **given})


def test_a_company_is_named_by_its_file_as_for_a_node(tmp_path: Path):
    file = tmp_path / "acme.yaml"
    with pytest.raises(ConfigError, match=r"acme\.yaml"):
        simulate(file, quick, seeds=[0])
    file.write_text("{name: Acme, roles: [{name: Dev, handle: dev}]}")
    report = simulate(str(file), quick, seeds=[0], minutes=0.2)
    assert report.summary.turns > 0


def test_a_company_without_seats_has_nothing_to_simulate():
    nobody = parse_company("name: Nobody\nroles: [{name: Boss, handle: boss, kind: human}]\n")
    with pytest.raises(ValueError, match="no agent"):
        simulate(nobody, quick, seeds=[0])


def test_speeds_are_measured():
    summary = simulate(COMPANY, quick, seeds=[0], minutes=0.3).summary
    assert 0 < summary.virtual_per_real < 1_000_000
