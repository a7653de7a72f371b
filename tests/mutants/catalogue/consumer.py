"""Faults of the consumer machine: brakes, settlement, deferrals, letting go."""

from __future__ import annotations

from typing import Any

from actors.delivery import Defer, Done
from actors.machines import consumer, signals
from actors.machines.consumer import Consumer, State
from tests.mutants.catalogue.cases import machines, queue, runtime
from tests.mutants.mutant import Patches, Tier

TIER = Tier("consumer")


@TIER.fault(
    runtime("mutant_gaps.py::test_a_hold_in_the_middle_of_a_linger_gives_the_drain_back_at_once"),
    lines=(83, 139),
)
def hold_ignored_while_collecting(patch: Patches) -> None:
    """A hold lands while a drain is collected, is looked at by the next pull only, and the
    drain is worked all the same."""

    def pulled(machine: Consumer, given: signals.Pulled) -> None:
        holds, machine.holds = machine.holds, {}
        Consumer._on_pulled(machine, given)
        machine.holds = holds

    patch.item(consumer._TABLE, (State.COLLECTING, signals.Pulled), pulled)


@TIER.fault(queue("a_deferral_returns_at_the_head"), lines=(39, 40))
def defer_omitted(patch: Patches) -> None:
    """A deferral tells the broker nothing: its mail comes back when the ack window ends."""
    verdicts_of = Consumer._verdicts_of

    def silent(machine: Consumer, deliveries: Any, outcome: Any) -> Any:
        verdicts = verdicts_of(machine, deliveries, outcome)
        return [] if isinstance(outcome, Defer) else verdicts

    patch.set(Consumer, "_verdicts_of", silent)


@TIER.fault(queue("a_deferral_stops_the_rest"), lines=(84,))
def rest_handed_back_in_reverse(patch: Patches) -> None:
    """What a drain has not reached goes back last first: the newest conversation is at the
    head afterwards."""
    undispatched = Consumer._undispatched

    def backwards(machine: Consumer, reason: str = "let go") -> Any:
        return undispatched(machine, reason)[::-1]

    patch.set(Consumer, "_undispatched", backwards)


@TIER.fault(queue("defer_delivery_leaves_the_event_and_stops_consuming"), lines=(39,))
def deferral_goes_on_pulling(patch: Patches) -> None:
    """A deferred seat asks for its mail again at once, and burns its budget in a loop."""
    verdicts_of = Consumer._verdicts_of

    def restless(machine: Consumer, deliveries: Any, outcome: Any) -> Any:
        verdicts = verdicts_of(machine, deliveries, outcome)
        machine.deferred = False
        return verdicts

    patch.set(Consumer, "_verdicts_of", restless)


@TIER.fault(queue("a_deferral_ends_by_itself"), lines=(39,))
def deferral_never_ends(patch: Patches) -> None:
    """The timer of a deferral wakes nobody: the seat rests until somebody unquiesces it."""

    def deaf(machine: Consumer, given: signals.Fired) -> None:
        if given.timer != consumer.RESUME:
            Consumer._on_fired(machine, given)

    patch.item(consumer._ALWAYS, signals.Fired, deaf)


@TIER.fault(queue("a_partition_is_settled_after_its_own_call"), lines=(36, 79))
def ack_before_completion(patch: Patches) -> None:
    """Mail is acknowledged as its handler starts: what fails or is cut is lost."""
    run_next = Consumer._run_next

    def eager(machine: Consumer) -> None:
        letters = machine._waiting[0].letters
        done = tuple((letter.delivery, Done()) for letter in letters)
        machine._do(signals.Settle(done, confirmed=False))
        run_next(machine)

    patch.set(Consumer, "_run_next", eager)


@TIER.fault(queue("a_failing_partition_redelivers_only_itself"), lines=(80,))
def one_failure_naks_the_drain(patch: Patches) -> None:
    """One conversation that fails takes the others of its drain along."""

    def all_of_it(machine: Consumer, given: signals.Ended) -> None:
        partition = machine._running
        if partition is not None and not isinstance(given.outcome, signals.Partly):
            for other in machine._waiting:
                machine._settle(machine._verdicts(other, given.outcome))
            machine._waiting = []
        Consumer._on_ended(machine, given)

    patch.item(consumer._ALWAYS, signals.Ended, all_of_it)


@TIER.fault(queue("unquiesce_leaves_the_holds"), lines=(66,))
def unquiesce_lifts_holds(patch: Patches) -> None:
    """An operator's unquiesce lets go a seat that is held for an open run."""

    def lift_all(machine: Consumer, given: signals.Unquiesce) -> None:
        machine.holds.clear()
        Consumer._on_unquiesce(machine, given)

    patch.item(consumer._ALWAYS, signals.Unquiesce, lift_all)


@TIER.fault(queue("a_hold_ends_with_its_last_reason"), lines=(136,))
def one_lift_ends_every_hold(patch: Patches) -> None:
    """Holds are counted as one: the first reason that ends lets the mail flow."""

    def lift_all(machine: Consumer, given: signals.Lift) -> None:
        machine.holds = dict.fromkeys([given.name] if machine.holds else [])
        Consumer._on_lift(machine, given)

    patch.item(consumer._ALWAYS, signals.Lift, lift_all)


@TIER.fault(queue("detach_releases_the_holds"), lines=(68, 136))
def holds_outlive_a_detach(patch: Patches) -> None:
    """A seat that was let go of under a hold comes back held, and nobody knows why."""

    def keep(machine: Consumer, given: signals.Detach) -> None:
        holds = dict(machine.holds)
        Consumer._on_detach(machine, given)
        machine.holds = holds

    patch.item(consumer._ALWAYS, signals.Detach, keep)


@TIER.fault(queue("attaching_again_clears_a_stale_quiesce"), lines=(68,))
def quiesce_outlives_a_detach(patch: Patches) -> None:
    """The quiesce of an earlier attachment lies over the next one."""

    def keep(machine: Consumer, given: signals.Attached) -> None:
        quiesced = machine.quiesced
        Consumer._on_attached(machine, given)
        machine.quiesced = quiesced
        machine._brake() if quiesced else None

    patch.item(consumer._ALWAYS, signals.Attached, keep)


@TIER.fault(
    machines("consumer_leaving.py::test_an_outcome_after_a_cut_does_not_touch_the_next_run"),
    lines=(67,),
)
def late_outcome_hits_the_next_run(patch: Patches) -> None:
    """A handler that was cut says at last that it is done, and the partition that runs now is
    acknowledged for it."""

    def whoever(machine: Consumer, given: signals.Ended) -> None:
        Consumer._on_ended(machine, signals.Ended(machine._number, given.outcome))

    patch.item(consumer._ALWAYS, signals.Ended, whoever)


@TIER.fault(queue("what_cannot_be_read_is_dropped"), lines=(46,))
def unreadable_mail_stays_out(patch: Patches) -> None:
    """What cannot be read is neither worked nor settled: it is in flight for half an hour and
    comes again."""
    without = Consumer._without_the_worn_out

    def forgetful(machine: Consumer, given: signals.Pulled) -> Any:
        return without(machine, signals.Pulled(given.letters, given.now, given.options))

    patch.set(Consumer, "_without_the_worn_out", forgetful)


@TIER.fault(
    machines("consumer.py::test_the_next_partition_waits_for_a_dead_letter_and_for_nothing_less"),
    lines=(43, 79),
)
def dead_letters_are_not_waited_for(patch: Patches) -> None:
    """The next partition starts while the dead letter of the last is still being stored."""

    def hasty(machine: Consumer) -> None:
        machine._unsettled = 0
        proceed(machine)

    proceed = Consumer._proceed
    patch.set(Consumer, "_proceed", hasty)
