"""Faults of a drain: how it is collected, how it is cut, in which order it is worked."""

from __future__ import annotations

from typing import Any

from actors.delivery import BatchOptions, Partition
from actors.machines import collection
from actors.machines.collection import Collection
from crewlet.queue import batch
from tests.mutants.catalogue.cases import machines, queue
from tests.mutants.mutant import Patches, Tier

TIER = Tier("batch")


@TIER.fault(queue("the_linger_counts_from_the_first_message"), lines=(74,))
def linger_slides(patch: Patches) -> None:
    """Every message that comes begins the linger anew: a chatty channel is never answered."""
    add = Collection.add

    def slide(gathered: Collection, letters: Any, now: float, options: BatchOptions) -> None:
        add(gathered, letters, now, options)
        gathered._deadline = now + options.window_s

    patch.set(Collection, "add", slide)


@TIER.fault(queue("max_batch_chunks"), lines=(76,))
def cap_is_ignored(patch: Patches) -> None:
    """A drain takes whatever waits: one turn is handed a week of mail."""

    def greedy(gathered: Collection) -> Any:
        gathered._cap = 10**6
        return first_pull(gathered)

    def whole(gathered: Collection, letters: Any, now: float, options: BatchOptions) -> None:
        add(gathered, letters, now, options)
        gathered._cap = 10**6

    first_pull, add = Collection.first_pull, Collection.add
    patch.set(Collection, "first_pull", greedy)
    patch.set(Collection, "add", whole)


@TIER.fault(queue("live_options"), lines=(77,))
def options_are_read_once(patch: Patches) -> None:
    """A new linger or cap counts after a restart only."""
    add, first = Collection.add, {}

    def stale(gathered: Collection, letters: Any, now: float, options: BatchOptions) -> None:
        add(gathered, letters, now, first.setdefault(id(gathered), options))

    patch.set(Collection, "add", stale)


@TIER.fault(queue("a_partition_stands_by_timestamp"), lines=(82,))
def partition_stands_by_arrival(patch: Patches) -> None:
    """Inside a conversation the broker's order is taken for the order of what happened."""
    partitions = collection.partitions

    def by_arrival(drain: Any) -> Any:
        drain = list(drain)
        place = {letter.id: at for at, letter in enumerate(drain)}
        return [
            Partition(one.key, tuple(sorted(one.letters, key=lambda letter: place[letter.id])))
            for one in partitions(drain)
        ]

    patch.set(collection, "partitions", by_arrival)


@TIER.fault(queue("an_aged_conversation_goes_first"), lines=(81,))
def newest_conversation_first(patch: Patches) -> None:
    """The last conversation to speak is worked first: a hot one starves those that wait."""
    partitions = collection.partitions
    patch.set(collection, "partitions", lambda drain: partitions(drain)[::-1])


@TIER.fault(
    machines("batch.py::test_without_a_timestamp_comes_last_and_ties_keep_the_order_of_arrival"),
    lines=(81,),
)
def no_timestamp_is_the_oldest(patch: Patches) -> None:
    """A letter without a time is taken for one from 1970, and goes before all others."""
    from actors.machines import batch as cut

    patch.set(cut, "_NEVER", float("-inf"))


@TIER.fault(queue("a_key_that_fails_merges_nothing"), lines=(78,))
def no_key_is_one_key(patch: Patches) -> None:
    """Events without a conversation are all of the same one: strangers share a turn."""
    key_of = batch._key_of

    def shared(event: Any, key: Any) -> str:
        found = key_of(event, key)
        return "event:" if found == f"event:{event.id}" else found

    patch.set(batch, "_key_of", shared)


@TIER.fault(
    machines("collection.py::test_a_message_that_may_have_ended_its_process_is_worked_alone"),
    lines=(55,),
)
def suspects_are_drained_together(patch: Patches) -> None:
    """A message that ends its process is worked with others, and uses up their budget too."""
    patch.set(collection, "SUSPECT", 10**6)
