"""Broken queues fail the suite: a case that cannot fail shows nothing.

Each plant is a fault of the queue or of the machine below it; the case named beside it sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from actors.delivery import BatchOptions, Letter, Partition, Retry
from actors.machines import budget, collection, consumer, signals
from actors.machines.collection import Collection
from actors.machines.consumer import Consumer
from actors.runtime import SeatRuntime
from crewlet.queue import batch, event_queue
from crewlet.queue.event_queue import EventQueue
from crewlet.queue.publisher import Publisher
from crewlet.testing.conformance import queue_cases
from tests.conformance import queue_twin

CASES = {case.name: case for case in queue_cases}
Plant = Callable[[pytest.MonkeyPatch], None]


def _replace(owner: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, value)


def _on(signal: type, handler: Callable[[Consumer, Any], None]) -> Plant:
    """The machine takes this input so."""
    return lambda patch: patch.setitem(consumer._ALWAYS, signal, handler)


def _nothing(machine: Consumer, given: object) -> None:
    pass


def _lift_all(machine: Consumer, given: signals.Lift) -> None:
    machine.holds.clear()
    machine._let_go()


def _unquiesce_and_lift(machine: Consumer, given: signals.Unquiesce) -> None:
    machine.holds.clear()
    Consumer._on_unquiesce(machine, given)


def _by_arrival(letters: Sequence[Letter]) -> Sequence[Partition]:
    keys = dict.fromkeys(letter.key for letter in letters)
    return [Partition(key, tuple(one for one in letters if one.key == key)) for key in keys]


def _slide(gathered: Collection, letters: Any, now: float, options: BatchOptions) -> None:
    _add(gathered, letters, now, options)
    gathered._deadline = now + options.window_s


def _first_options(gathered: Collection, letters: Any, now: float, options: BatchOptions) -> None:
    _add(gathered, letters, now, gathered.__dict__.setdefault("first", options))


def _fold_each(partition: Partition) -> batch.Batch:
    made = _batch_of(partition)
    return batch.Batch(
        made.key, made.events, made.headroom, dict.fromkeys(made.headrooms, made.headroom)
    )


def _tell_and_raise(publisher: Publisher, topic: str, event: Any) -> None:
    for listener in publisher._listeners:
        listener(topic, event)


async def _no_drain(runtime: SeatRuntime, bound_s: float) -> None:
    pass


async def _no_handlers(queue: EventQueue, timeout_s: float) -> int:
    return 0


async def _no_pause(queue: EventQueue) -> None:
    queue._check_live()


async def _keep_attached(queue: EventQueue, topic: str, group: str) -> bool:
    return True


_add, _batch_of = Collection.add, event_queue.batch_of

PLANTS: dict[str, tuple[Plant, str]] = {
    "a hold holds nothing": (_on(signals.Hold, _nothing), "a_hold_buffers_in_the_mailbox"),
    "one lift lifts all": (_on(signals.Lift, _lift_all), "a_hold_ends_with_its_last_reason"),
    "a quiesce is nothing": (_on(signals.Quiesce, _nothing), "quiesce_and_unquiesce"),
    "an unquiesce lifts holds": (
        _on(signals.Unquiesce, _unquiesce_and_lift),
        "unquiesce_leaves_the_holds",
    ),
    "a detach detaches nothing": (
        _replace(EventQueue, "detach", _keep_attached),
        "detach_keeps_the_mailbox_and_its_mail",
    ),
    "a pause pauses nothing": (
        _replace(EventQueue, "pause_delivery", _no_pause),
        "pause_delivery_blocks_dispatch_but_accepts_publish",
    ),
    "nobody is waited for": (
        _replace(EventQueue, "wait_for_handlers", _no_handlers),
        "wait_for_handlers_counts_those_that_run",
    ),
    "a stop leaves mail in hand": (
        _replace(SeatRuntime, "drain", _no_drain),
        "stop_hands_back_what_it_cuts",
    ),
    "no budget is ever spent": (
        _replace(budget, "spent", lambda delivery: False),
        "exhausted_redeliveries_dead_letter_the_event",
    ),
    "a failure comes back at the head": (
        _replace(budget.Failures, "failed", lambda self, position: None),
        "a_failure_returns_behind_waiting_mail",
    ),
    "a deferral goes behind": (
        _replace(consumer, "give_back", lambda delivery, reason, after_s=None: Retry(0.1)),
        "a_deferral_returns_at_the_head",
    ),
    "the broker's order stays": (
        _replace(collection, "partitions", _by_arrival),
        "a_partition_stands_by_timestamp",
    ),
    "a hot conversation goes first": (
        _replace(collection, "partitions", _by_arrival),
        "an_aged_conversation_goes_first",
    ),
    "the linger slides": (
        _replace(Collection, "add", _slide),
        "the_linger_counts_from_the_first_message",
    ),
    "options are read once": (_replace(Collection, "add", _first_options), "live_options"),
    "each headroom is the batch's": (
        _replace(event_queue, "batch_of", _fold_each),
        "a_batch_at_mixed_counts_reports_each_and_the_smallest",
    ),
    "no key is one key": (
        _replace(batch, "_key_of", lambda event, key: "all"),
        "a_key_that_fails_merges_nothing",
    ),
    "a listener fails a publish": (
        _replace(Publisher, "_tell", _tell_and_raise),
        "a_listener_that_fails_prevents_nothing",
    ),
    "no listener is told": (
        _replace(Publisher, "_tell", lambda self, topic, event: None),
        "a_publish_listener_sees_every_publish",
    ),
    "a stopped queue works on": (
        _replace(EventQueue, "_check_live", lambda self: self._runtime),
        "unstarted_and_stopped_answer_the_same_for_every_verb",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plant", PLANTS)
def test_the_case_sees_the_plant(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, name = PLANTS[plant]
    queue_twin.run(CASES[name])
    spoil(monkeypatch)
    with pytest.raises((AssertionError, LookupError, ValueError, TimeoutError, RuntimeError)):
        queue_twin.run(CASES[name])
