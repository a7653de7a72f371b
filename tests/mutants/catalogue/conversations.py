"""Faults in what a turn is told of a conversation, and in what the ledger is told of a turn."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from msgspec import structs

from crewlet.errors import StoreUnavailable
from crewlet.handlers import command, outcomes
from crewlet.inbound import coalesce, lookup
from crewlet.inbound.completions import Completions
from crewlet.inbound.given_up import GivenUp
from crewlet.inbound.rate import RateValve
from crewlet.inbound.router import Router
from crewlet.inbound.steps import coalesced
from crewlet.inbound.steps.coalesced import Coalesced
from crewlet.inbound.turn_run import TurnRun
from tests.mutants.catalogue.cases import inbound
from tests.mutants.mutant import Patches, Tier

TIER = Tier("conversations")


@TIER.fault(
    inbound("coalesce.py::test_a_superseded_body_is_its_lead_and_the_last_one_keeps_its_text"),
    lines=(99,),
)
def stale_texts_are_kept(patch: Patches) -> None:
    """A description that was changed five times stands in the digest five times."""
    bullet = coalesce._bullet

    def whole(one: Any, later: Any) -> str:
        return bullet(structs.replace(one, lead=""), later)

    patch.set(coalesce, "_bullet", whole)


@TIER.fault(
    inbound("coalesce.py::test_two_people_who_say_the_same_are_two_facts[ben]"), lines=(100,)
)
def two_votes_are_one(patch: Patches) -> None:
    """Whoever says `+1` first is left out, since somebody says it again."""

    def by_text(one: Any, later: Any) -> bool:
        return any(other.salient.strip() == one.salient.strip() for other in later)

    patch.set(coalesce, "_said_again", by_text)


@TIER.fault(inbound("coalesce.py::test_no_text_is_cut_to_a_length"), lines=(101,))
def long_texts_are_cut(patch: Patches) -> None:
    """A stack trace ends in the middle, and so does the reader's understanding."""
    bullet = coalesce._bullet

    def short(one: Any, later: Any) -> str:
        return bullet(structs.replace(one, body=one.body[:2000]), later)

    patch.set(coalesce, "_bullet", short)


@TIER.fault(
    inbound("coalesce.py::test_the_depth_is_that_of_the_deepest_and_the_trace_that_of_the_first"),
    lines=(104,),
)
def merging_launders_the_depth(patch: Patches) -> None:
    """A deep event that is merged behind a shallow one wakes seats for ever."""
    trigger = coalesce._trigger

    def first_ones(events: Any, constituents: Any, text: str) -> Any:
        return trigger(events[:1] or events, constituents, text)

    patch.set(coalesce, "_trigger", first_ones)


@TIER.fault(
    inbound("coalesced.py::test_the_others_are_put_back_before_the_first_is_worked"), lines=(106,)
)
def taken_apart_too_late(patch: Patches) -> None:
    """The rest of a partition that can't be merged is put back behind the first one's turn."""
    requeue = Coalesced._requeue

    async def later(step: Coalesced, handle: str, letter: Any) -> None:
        asyncio.get_running_loop().call_later(
            1.0, lambda: asyncio.ensure_future(requeue(step, handle, letter))
        )

    patch.set(Coalesced, "_requeue", later)


@TIER.fault(
    inbound("coalesced.py::test_a_merge_is_published_and_names_its_partition"), lines=(107,)
)
def merges_are_not_published(patch: Patches) -> None:
    """Nobody can see why ten messages were one turn."""

    async def silent(step: Coalesced, work: Any, trigger: Any) -> None:
        return None

    patch.set(coalesced.Coalesced, "_record", silent)


@TIER.fault(
    inbound("given_up.py::test_a_failed_message_that_a_later_turn_answered_is_dropped_and_says_so"),
    lines=(92,),
)
def shown_messages_are_forgotten(patch: Patches) -> None:
    """A message that failed and was answered in its thread is answered once more, late."""
    record = Completions.record

    async def triggers_only(completions: Completions, turn: Any, shown: Any = ()) -> Any:
        return await record(completions, turn)

    patch.set(Completions, "record", triggers_only)


@TIER.fault(
    inbound("given_up.py::test_an_abandoned_turn_counts_as_worked_and_everybody_is_told"),
    lines=(94,),
)
def given_up_in_silence(patch: Patches) -> None:
    """A model declines, and the message is gone."""

    async def silent(given_up: GivenUp, work: Any, turn_id: str, guard: Any, reason: str) -> None:
        return None

    patch.set(GivenUp, "announce", silent)


@TIER.fault(inbound("given_up.py::test_an_outage_is_no_panic[StoreUnavailable]"), lines=(91, 94))
def outages_are_panics(patch: Patches) -> None:
    """The store is away for a minute, and everything that was being worked counts as worked."""
    run = TurnRun.run

    async def panicky(turns: TurnRun, work: Any) -> Any:
        try:
            return await run(turns, work)
        except StoreUnavailable as error:
            return await turns._panicked(work, "turn-?", work.trigger.trace, error)

    patch.set(TurnRun, "run", panicky)


@TIER.fault(
    inbound("rate.py::test_a_store_that_does_not_say_lets_it_through[error0]"),
    lines=(109,),
)
def unknown_rates_shut_the_valve(patch: Patches) -> None:
    """A store that does not answer drops every notification of the company."""
    counts = RateValve._counts

    async def closed(valve: RateValve, key: str, limit: int, second: int) -> bool:
        try:
            return await counts(valve, key, limit, second)
        except StoreUnavailable:
            return False

    patch.set(RateValve, "_counts", closed)


@TIER.fault(
    inbound("rate.py::test_what_is_over_the_limit_is_skipped_and_said_and_others_are_woken"),
    lines=(109, 127),
)
def the_limit_drops_in_silence(patch: Patches) -> None:
    """What is over the limit stands nowhere."""
    too_many = Router._too_many

    async def silent(router: Router, event: Any, index: int, recipient: Any, wake: str) -> bool:
        skip, router._skip = router._skip, _nothing  # type: ignore[method-assign]
        try:
            return await too_many(router, event, index, recipient, wake)
        finally:
            router._skip = skip  # type: ignore[method-assign]

    patch.set(Router, "_too_many", silent)


@TIER.fault(
    inbound("rate.py::test_a_delivery_that_is_routed_again_takes_nobody_elses_place"),
    lines=(109,),
)
def a_wake_counts_in_every_pass(patch: Patches) -> None:
    """A delivery that failed for one of its seats takes the place of another for the rest."""
    lets = RateValve._lets

    async def forgetful(valve: RateValve, key: str, limit: int, wake: str, at: datetime) -> bool:
        return await lets(valve, key, limit, f"{wake}-{at.timestamp():.0f}", at)

    patch.set(RateValve, "_lets", forgetful)


@TIER.fault(
    "tests/handlers/test_stated_outcomes.py"
    "::test_what_is_printed_is_an_answer_whatever_it_looks_like",
    lines=(275,),
)
def a_printed_outcome_is_taken_for_one(patch: Patches) -> None:
    """A comment has the model behind a command say a suspension, and holds its seat."""
    said = command.said

    def credulous(text: str) -> Any:
        return outcomes.written(text.encode(), "") if text.startswith("{") else said(text)

    patch.set(command, "said", credulous)


async def _nothing(*_: Any) -> None:
    return None


@TIER.fault(
    inbound("lookup.py::test_without_an_answer_it_is_recorded_and_only_routes_are_told[never]"),
    lines=(129,),
)
def lookups_have_all_the_time(patch: Patches) -> None:
    """A vendor's API that hangs keeps the router, and every delivery behind it."""
    patch.set(lookup, "LOOKUP_S", 10.0**5)
