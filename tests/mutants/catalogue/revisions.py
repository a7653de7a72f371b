"""Faults of a company that is applied anew, and of seats that it has not any more."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from actors.holding import claim
from actors.ports import BrokerError
from actors.tenure import SEAT, Tenure
from crewlet.coordination.store import CONFIG
from crewlet.node import reconcile, retire
from crewlet.node.retire import OWNER, Retirement
from crewlet.revisions.retirement import Retire, SeatRecord
from crewlet.revisions.revision import encoded
from crewlet.revisions.roster import Roster
from crewlet.revisions.store import ACTIVE, Active, Revisions
from tests.mutants.catalogue.cases import node
from tests.mutants.mutant import Patches, Tier

TIER = Tier("revisions")

REVISIONS = "revisions_on_the_twin.py::"
LATE = "retirement_interleaved.py::test_a_deletion_that_lay_on_its_way_for_long_is_made_good"
RETIREMENT = "retirement_on_the_twin.py::"
A_DAY = f"{RETIREMENT}test_a_seat_is_retired_a_day_after_it_was_seen_to_be_absent_with_its_mail"
BACK = f"{RETIREMENT}test_a_seat_that_is_back_within_the_day_finds_its_mail"


@TIER.fault(
    node(f"{REVISIONS}test_nothing_is_routed_to_a_seat_whose_mailbox_is_not_there_yet"),
    lines=(123, 132),
)
def routed_before_the_mailbox_is_there(patch: Patches) -> None:
    """A node routes by the new company while the mailboxes of its seats are still being made."""
    ensure = reconcile.ensure_mailboxes
    behind: list[Any] = []

    async def soon(broker: Any, wanted: Any) -> Any:
        behind.append(asyncio.ensure_future(ensure(broker, wanted)))
        return frozenset(), frozenset()

    patch.set(reconcile, "ensure_mailboxes", soon)


@TIER.fault(
    node(f"{REVISIONS}test_of_two_who_apply_at_once_one_is_told_that_the_other_was_first"),
    lines=(123,),
)
def last_writer_wins(patch: Patches) -> None:
    """What somebody has just applied is replaced by what somebody else had already sent."""

    async def put(revisions: Revisions, revision: Any, after: Active | None) -> None:
        await revisions._store.put(CONFIG, ACTIVE, encoded(revision))

    patch.set(Revisions, "activate", put)


@TIER.fault(
    node(A_DAY),
    node(BACK),
    lines=(149, 151),
)
def retired_on_sight(patch: Patches) -> None:
    """A seat that the file has lost for a moment loses its mail in the next sweep."""
    decide = retire.next_step

    def at_once(
        record: SeatRecord | None, *, wanted: bool, listed: bool, now: datetime
    ) -> SeatRecord | Retire | None:
        if record is not None and record.state == "absent" and not wanted:
            return Retire()
        return decide(record, wanted=wanted, listed=listed, now=now)

    patch.set(retire, "next_step", at_once)


@TIER.fault(
    node(f"{RETIREMENT}test_a_node_that_is_behind_stamps_and_retires_nothing"),
    lines=(150,),
)
def unknown_is_absent(patch: Patches) -> None:
    """A node goes by the company that it has, whatever revision is active by now."""

    async def own(duty: Retirement) -> frozenset[str]:
        return frozenset(seat.handle for seat in duty._node.company.agents())

    patch.set(Retirement, "_wanted", own)


@TIER.fault(
    node(f"{RETIREMENT}test_a_seat_that_somebody_still_works_is_not_retired"),
    lines=(153,),
)
def retired_while_it_is_worked(patch: Patches) -> None:
    """Whoever does the duty takes the seat away from a node that works it."""

    async def taken(duty: Retirement, handle: str, tenure: Tenure) -> Any:
        name, row = duty._node.node_id, duty._leases.row_of(SEAT + handle)
        lease = claim(handle, row, owner=name + OWNER, node=name, session=tenure.under)
        try:
            return await duty._leases.write(lease)
        except BrokerError:
            return None

    patch.set(Retirement, "_claimed", taken)


@TIER.fault(
    node(BACK),
    lines=(151,),
)
def absence_is_never_forgotten(patch: Patches) -> None:
    """A seat that was away yesterday, and is away again today, is retired today."""

    async def unregistered(roster: Roster, handles: Any) -> None:
        return None

    patch.set(Roster, "register", unregistered)


@TIER.fault(node(f"{LATE}_by_the_next_look"), lines=(132, 153))
def a_late_deletion_is_for_good(patch: Patches) -> None:
    """A seat of the company is without an inbox until somebody applies another revision."""

    async def never(duty: Retirement, handle: str) -> None:
        return None

    patch.set(Retirement, "_mend", never)
