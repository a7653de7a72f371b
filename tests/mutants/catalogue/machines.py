"""Faults of the three machines of a fleet, that drawn steps see: the session, the placement, the
hand-off."""

from __future__ import annotations

from msgspec.structs import replace

from actors import outlook
from actors.machines import handoff, lease, placement
from actors.machines.handoff import Handoff, NotEmpty, State
from actors.machines.lease import SessionMachine
from actors.tenure import Lease
from tests.mutants.catalogue.cases import machines
from tests.mutants.mutant import Patches, Tier

TIER = Tier("machines")


@TIER.fault(machines("session_steps.py::TestSessions::runTest"), lines=(272,))
def renewals_count_from_their_answer(patch: Patches) -> None:
    """A renewal whose answer was under way for seconds is believed in for as much longer."""
    written = SessionMachine._on_written

    def fresh(machine: SessionMachine, row: Lease, sent: float, now: float) -> None:
        held = machine.state is lease.State.HELD
        written(machine, row, now if held else sent, now)

    patch.set(SessionMachine, "_on_written", fresh)


@TIER.fault(machines("session_steps.py::TestSessions::runTest"), lines=(272,))
def lapsed_session_is_renewed(patch: Patches) -> None:
    """Whoever finds its own row again goes on under the epoch that had ended."""
    take = SessionMachine._take

    def again(machine: SessionMachine, row: Lease | None) -> None:
        take(machine, row)
        if row is not None and row.owner == machine._owner:
            machine._effects.pop()
            machine._do(lease.Write(replace(row, released=False)))

    patch.set(SessionMachine, "_take", again)


@TIER.fault(machines("fleet_steps.py::TestFleet::runTest"), lines=(272,))
def one_more_goes_to_whoever_has_it_not(patch: Patches) -> None:
    """Who has one seat more than the others is decided anew each time, in favour of those who have
    fewer: seats move round and round."""

    def restless(shares: placement._Shares, totals: dict[str, int]) -> None:
        even = [id for id in shares._held if id not in shares._by_order]
        even.sort(key=lambda id: (shares._held[id], id))
        shares._more = set(even[: shares._extra])
        for id in shares._held:
            totals[id] += shares._quota(id)

    patch.set(placement._Shares, "choose", restless)


@TIER.fault(
    "tests/actors/fleet/test_strategy.py::"
    "test_one_that_wants_everything_takes_nothing_from_a_node_that_lives",
    lines=(282,),
)
def a_strategy_may_take_what_others_hold(patch: Patches) -> None:
    """An embedder's mistake costs a node that lives its seats, again and again."""
    patch.set(outlook, "decide", lambda strategy, board: strategy(board))


@TIER.fault(machines("handoff_steps.py::TestThree::runTest"), lines=(272,))
def failed_teardown_releases_the_seat(patch: Patches) -> None:
    """A seat whose teardown failed is given to the next node while it is attached to this one."""

    def careless(machine: Handoff, given: NotEmpty) -> None:
        machine._empty(handoff.Empty())

    patch.item(handoff._TABLE, (State.LEAVING, NotEmpty), careless)
