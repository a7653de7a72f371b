"""Faults in what interrupts a seat: an outage of its provider, a person who stops its turn."""

from __future__ import annotations

from typing import Any

from actors.delivery import Nak
from crewlet.inbound import outage as machine
from crewlet.inbound.outages import Outages
from crewlet.inbound.running import Turns
from crewlet.inbound.turn_run import Ending, TurnRun
from tests.mutants.catalogue.cases import inbound, node
from tests.mutants.mutant import Patches, Tier

TIER = Tier("outage")

HELD = inbound("outages.py::test_the_seat_is_held_before_its_mail_goes_back")
TWIN = "provider_outage.py::test_forty_minutes_without_a_provider_cost_no_mail"


@TIER.fault(HELD, node(f"{TWIN}[probe]"), node(f"{TWIN}[deliveries]"), lines=(145,))
def outage_fails_the_mail(patch: Patches) -> None:
    """A 503 is a failure like any other: a quarter of an hour of it is 25 deliveries."""

    async def failed(run: TurnRun, attempt: Any, outcome: Any) -> Ending:
        return Ending(Nak(outcome.reason), "nak")

    patch.set(TurnRun, "_unavailable", failed)


@TIER.fault(
    inbound("outage.py::test_what_costs_deliveries_doubles_so_that_days_do_not_spend_the_budget"),
    lines=(145,),
)
def deliveries_are_spaced_like_probes(patch: Patches) -> None:
    """Each try is at most ten minutes after the last, also where it is a delivery: four hours
    of an outage are 25 of them."""
    failed = machine.failed

    def capped(known: Any, *, at: Any, reason: str, retry_after_s: float, draw: float) -> Any:
        outage = failed(known, at=at, reason=reason, retry_after_s=retry_after_s, draw=draw)
        patience = min(machine.LONGEST_FREE_S, outage.wait_s)
        return machine.structs.replace(outage, wait_s=patience)

    patch.set(machine, "failed", capped)


@TIER.fault(
    inbound("outage.py::test_retry_after_is_honoured_with_and_without_a_probe"),
    node(f"{TWIN}[limited]"),
    lines=(145,),
)
def retry_after_is_ignored(patch: Patches) -> None:
    """The spacing is our own, whatever the provider asks for."""
    patch.set(machine, "LONGEST_ASKED_S", 0.0)


@TIER.fault(inbound("outages.py::test_without_a_probe_the_next_delivery_is_one"), lines=(145, 170))
def outage_is_told_with_each_try(patch: Patches) -> None:
    """llm_unavailable comes again with each probe: thousands of seats tell it all day."""
    found = Outages.found

    async def forgetful(
        outages: Outages, seat: Any, handler: Any, said: Any, *, turn_id: str, trace: Any
    ) -> Any:
        outages.forget(seat.handle)
        return await found(outages, seat, handler, said, turn_id=turn_id, trace=trace)

    patch.set(Outages, "found", forgetful)


@TIER.fault(
    node("stop_running.py::test_a_pause_that_stops_ends_the_turn_at_its_next_checkpoint_as_worked"),
    lines=(147, 168),
)
def stopped_turn_is_tried_again(patch: Patches) -> None:
    """A person stops a turn, and the seat begins it anew after the resume."""

    async def failed(run: TurnRun, attempt: Any, stopped: Any) -> Ending:
        return Ending(Nak("stopped"), "nak")

    patch.set(TurnRun, "_stopped", failed)


@TIER.fault(node("stop_running.py::test_a_turn_that_waits_for_a_slot_does_not_begin"), lines=(147,))
def turn_begins_although_it_was_stopped(patch: Patches) -> None:
    """The stop is told to the turns that run; one that waits for its slot then runs whole."""
    patch.set(Turns, "halted", lambda turns, seat: False)
