"""Faults of the budget: what a delivery costs, what a failure waits for, what is told of it."""

from __future__ import annotations

from typing import Any

from actors import delivery
from actors.delivery import BUDGET, Delivery, HandBack, Partition, Retry
from actors.machines import budget, consumer
from actors.machines.budget import Failures
from tests.mutants.catalogue.cases import machines, node, queue
from tests.mutants.mutant import Patches, Tier

TIER = Tier("budget")


@TIER.fault(queue("exhausted_redeliveries_dead_letter_the_event"), lines=(43,))
def budget_off_by_one(patch: Patches) -> None:
    """A message dies after its 26th delivery: `>` where `>=` was meant."""
    patch.set(budget, "spent", lambda one: one.count is not None and one.count > BUDGET)


@TIER.fault(queue("a_deferral_on_the_last_delivery_is_a_dead_letter"), lines=(43,))
def deferral_is_outside_the_budget(patch: Patches) -> None:
    """Only failures run out of deliveries: a message that is deferred again and again meets
    the broker's own limit and is stuck there."""
    give_back = consumer.give_back

    def lenient(one: Delivery, reason: str, retry_after_s: float | None = None) -> Any:
        return HandBack() if retry_after_s is None else give_back(one, reason, retry_after_s)

    patch.set(consumer, "give_back", lenient)


@TIER.fault(
    machines("budget.py::test_the_budget_ends_at_its_last_delivery_and_an_unknown_count_never"),
    lines=(56,),
)
def unknown_count_is_the_last(patch: Patches) -> None:
    """Metadata that cannot be read counts as the end: a first failure is a dead letter."""
    patch.set(budget, "spent", lambda one: one.count is None or one.count >= BUDGET)
    patch.set(delivery, "headroom", lambda count: 0 if count is None else max(0, BUDGET - count))


@TIER.fault(
    machines("consumer_budget.py::test_a_message_beyond_its_budget_dies_unworked"), lines=(43,)
)
def worn_out_mail_is_run_again(patch: Patches) -> None:
    """A message whose runs end their process is handed to a handler beyond its budget."""
    patch.set(consumer, "overspent", lambda one: False)


@TIER.fault(queue("a_failure_returns_behind_waiting_mail"), lines=(38,))
def failure_returns_at_the_head(patch: Patches) -> None:
    """A failed message is replayed at once: one poison holds up the whole mailbox."""
    give_back = consumer.give_back

    def at_once(one: Delivery, reason: str, retry_after_s: float | None = None) -> Any:
        verdict = give_back(one, reason, retry_after_s)
        return HandBack() if isinstance(verdict, Retry) else verdict

    patch.set(consumer, "give_back", at_once)


@TIER.fault(queue("a_backoff_doubles_to_half_a_minute"), lines=(37,))
def backoff_is_flat(patch: Patches) -> None:
    """Each failure waits one second: 25 deliveries are gone within half a minute."""
    patch.set(budget, "backoff_s", lambda failures, policy=None: 1.0)


@TIER.fault(
    machines("budget.py::test_failures_are_counted_for_each_message_and_forgotten_with_it"),
    machines("consumer_budget.py::test_failures_of_a_message_that_is_gone_are_forgotten"),
    lines=(37,),
)
def failures_are_never_forgotten(patch: Patches) -> None:
    """What failed once and was worked then is remembered for ever: memory that only grows."""
    patch.set(Failures, "forget", lambda failures, position: None)


@TIER.fault(queue("a_batch_at_mixed_counts_reports_each_and_the_smallest"), lines=(52, 53))
def headroom_folded_by_max(patch: Patches) -> None:
    """A partition states the largest headroom of its messages: its handler gives up on a last
    delivery without knowing."""

    def largest(partition: Partition) -> int | None:
        stated = [one.headroom for one in partition.letters if one.headroom is not None]
        return max(stated) if stated else None

    patch.set(Partition, "headroom", property(largest))


@TIER.fault(queue("a_handler_is_told_how_many_deliveries_are_left"), lines=(51,))
def headroom_off_by_one(patch: Patches) -> None:
    """The delivery in hand is counted among those to come: 1 on the last."""

    def generous(count: int | None) -> int | None:
        return None if count is None else max(0, BUDGET + 1 - count)

    patch.set(delivery, "headroom", generous)


@TIER.fault(
    node("node_on_the_twin.py::test_a_handler_that_always_fails_ends_in_the_dead_letters"),
    lines=(43, 51),
)
def budget_of_thirty(patch: Patches) -> None:
    """The broker's own limit is taken for the budget: the last delivery becomes no letter."""
    patch.set(budget, "BUDGET", 30)
