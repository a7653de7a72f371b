"""Faults between a partition and its turn: the ledger, duplicates, the gate, the mailboxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from actors.delivery import Ack, Defer
from crewlet.errors import StoreUnavailable
from crewlet.inbound import dispatch
from crewlet.inbound.ledger import Ledger, Worked
from crewlet.inbound.running import Turns
from crewlet.inbound.turn_run import TurnRun
from crewlet.node import node as nodes
from crewlet.queue import Publisher
from tests.mutants.catalogue.cases import inbound, node
from tests.mutants.mutant import Patches, Tier

TIER = Tier("dispatch")


@TIER.fault(
    inbound("dispatch.py::test_what_a_turn_has_worked_is_skipped_and_said_for_each"),
    lines=(86, 89),
)
def ledger_is_not_asked(patch: Patches) -> None:
    """A drain that outlasted its ack window is worked twice."""

    async def nobody(ledger: Ledger, seat: str, event_ids: Any) -> Any:
        return {}

    patch.set(Ledger, "worked", nobody)


@TIER.fault(inbound("ledger.py::test_unreadable_it_hides_nothing"), lines=(91,))
def unreadable_ledger_hides_work(patch: Patches) -> None:
    """A store that does not answer counts as "worked before": mail is acknowledged unworked."""
    worked = Ledger.worked

    async def pessimist(ledger: Ledger, seat: str, event_ids: Any) -> Any:
        import datetime

        try:
            await asyncio.gather(*(ledger._row(seat, id) for id in event_ids))
        except StoreUnavailable:
            now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
            return {id: Worked("?", id, "?", now) for id in event_ids}
        return await worked(ledger, seat, event_ids)

    patch.set(Ledger, "worked", pessimist)


@TIER.fault(inbound("dispatch.py::test_of_a_partial_overlap_only_the_rest_runs"), lines=(90,))
def ledger_is_kept_by_digest(patch: Patches) -> None:
    """The record is of a drain as a whole: another cut of the same mail is worked again."""
    worked = Ledger.worked

    async def all_or_nothing(ledger: Ledger, seat: str, event_ids: Any) -> Any:
        found = await worked(ledger, seat, event_ids)
        return found if len(found) == len(event_ids) else {}

    patch.set(Ledger, "worked", all_or_nothing)


@TIER.fault(
    inbound("dispatch.py::test_without_its_row_in_the_ledger_a_turn_is_not_acknowledged"),
    lines=(91,),
)
def acknowledged_without_its_row(patch: Patches) -> None:
    """A turn whose row could not be written is acknowledged all the same."""
    complete = TurnRun._complete

    async def careless(run: TurnRun, attempt: Any, outcome: Ack, shown: Any = ()) -> Any:
        found = await complete(run, attempt, outcome, shown)
        return outcome if isinstance(found, Defer) else found

    patch.set(TurnRun, "_complete", careless)


@TIER.fault(
    inbound("dispatch.py::test_a_turn_that_did_not_finish_leaves_no_trace_in_the_ledger"),
    lines=(89, 93),
)
def recorded_before_it_is_worked(patch: Patches) -> None:
    """The row is written as a turn starts: what fails is never tried again."""
    handled = TurnRun._handled

    async def early(run: TurnRun, attempt: Any) -> Any:
        await run._complete(attempt, Ack())
        return await handled(run, attempt)

    patch.set(TurnRun, "_handled", early)


@TIER.fault(inbound("dispatch.py::test_the_same_event_twice_is_one_constituent"), lines=(88,))
def duplicates_stay_in_the_turn(patch: Patches) -> None:
    """A publisher's retry that the broker took twice is shown to the model twice."""

    async def kept(work: Any) -> None:
        return None

    patch.set(dispatch, "drop_duplicates", kept)


@TIER.fault(
    inbound("dispatch.py::test_turns_over_the_nodes_bound_wait_in_the_process"),
    node("node_on_the_twin.py::test_the_gate_lets_so_many_turns_run_and_no_more"),
    lines=(95,),
)
def gate_lets_everybody_in(patch: Patches) -> None:
    """A hundred seats that wake together run a hundred models together."""

    @asynccontextmanager
    async def open_gate(turns: Turns) -> AsyncIterator[None]:
        yield

    patch.set(Turns, "slot", open_gate)


@TIER.fault(inbound("dispatch.py::test_a_turn_that_is_cut_ends_in_the_record_too"), lines=(162,))
def cut_turn_never_ends(patch: Patches) -> None:
    """A turn that was cut by a stop stays open in the record for ever: its end is written by
    the very task that is being cancelled."""
    patch.set(Publisher, "record_soon", lambda client, event: None)


@TIER.fault(node("node_on_the_twin.py::test_a_seat_without_a_handler_is_held"), lines=(33, 132))
def publish_before_ensure(patch: Patches) -> None:
    """A node is up before its mailboxes are made: what is sent meanwhile is dropped."""
    ensure = nodes.ensure_mailboxes
    behind: list[Any] = []

    async def later(broker: Any, wanted: Any) -> Any:
        async def soon() -> None:
            await asyncio.sleep(1.0)
            await ensure(broker, wanted)

        behind.append(asyncio.ensure_future(soon()))
        return frozenset(), frozenset()

    patch.set(nodes, "ensure_mailboxes", later)
