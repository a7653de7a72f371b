"""Faults between a question and its answer: once, in order, and never nothing."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace

from crewlet.a2a import asking
from crewlet.a2a.answering import Answering
from crewlet.a2a.channel import TRANSITIONS, Owed
from crewlet.a2a.sweep import Sweep
from tests.mutants.catalogue.cases import colleagues
from tests.mutants.mutant import Patches, Tier

TIER = Tier("a2a")


@TIER.fault(
    colleagues("sweep.py::test_what_is_not_in_the_ledger_is_not_sent_and_what_is_goes_out_once"),
    lines=(215,),
)
def answer_goes_out_before_its_turn_completes(patch: Patches) -> None:
    """The reply is posted as soon as the handler has it: a turn that lost its seat answers too."""
    keep = Answering.keep

    async def at_once(answering: Answering, finished: Any) -> str:
        found = await keep(answering, finished)
        await answering.send(finished.handle, finished.letters)
        return found

    patch.set(Answering, "keep", at_once)


@TIER.fault(
    colleagues(
        "channel.py::test_the_answer_of_a_turn_that_lost_its_seat_never_stands_over_its_successors"
    ),
    colleagues("channel.py::test_whatever_happens_a_channel_goes_forward_and_ends_once"),
    lines=(215,),
)
def last_writer_of_an_answer_wins(patch: Patches) -> None:
    """Whoever writes last is right: a zombie's answer replaces that of the seat's new owner."""

    def owe(channel: Any, given: Owed) -> Any:
        return replace(channel, reply=given.reply)

    patch.item(TRANSITIONS, ("answered", Owed), owe)  # type: ignore[arg-type]


@TIER.fault(
    colleagues("asking.py::test_a_turn_that_runs_again_asks_the_same_question_once"),
    lines=(215,),
)
def each_run_of_a_turn_asks_anew(patch: Patches) -> None:
    """A channel gets a fresh id: a turn that is run again puts its question a second time."""
    count = itertools.count()

    def fresh(asker: str, work_key: str, target: str, ordinal: int) -> str:
        return f"a2a-{next(count):012x}"

    patch.set(asking, "channel_id", fresh)


@TIER.fault(
    colleagues(
        "asks_that_fail.py::test_a_question_that_becomes_a_dead_letter_wakes_the_asker_once"
    ),
    lines=(219,),
)
def dead_letters_of_questions_are_nobodys(patch: Patches) -> None:
    """The asked seat fails for good, and whoever asked hears of it when the hour is over."""

    async def none(sweep: Sweep) -> dict[str, str]:
        return {}

    patch.set(Sweep, "_dead", none)


@TIER.fault(
    colleagues("channel.py::test_an_answer_is_refused_with_the_reason"),
    lines=(216,),
)
def a_closed_channel_swallows_answers(patch: Patches) -> None:
    """A late answer is taken without a word: its seat believes that somebody read it."""

    def swallow(channel: Any, given: Owed) -> Any:
        return channel

    patch.item(TRANSITIONS, ("closed", Owed), swallow)  # type: ignore[arg-type]
