"""Faults of the promises that no other fault breaks first: S9, S11, S18, S19, L1, L2, L7 and L8.
Seeds of the simulation see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.delivery import BatchOptions, Letter
from actors.machines import consumer
from actors.machines.collection import Collection
from actors.machines.consumer import Consumer
from actors.machines.fleet_view import FleetView
from actors.machines.signals import Attached, Hold, Lift, StartTimer, Unquiesce
from actors.machines.timing import Timing
from crewlet.broker.memory_mailbox import MemoryMailbox
from crewlet.broker.memory_store import MemoryStore
from crewlet.coordination.store import LEASES, lease_key
from tests.mutants.catalogue.cases import seeds
from tests.mutants.mutant import Patches, Tier

TIER = Tier("teeth")


def _input(patch: Patches, kind: type, name: str, method: Any) -> None:
    """What the consumer does with an input that may come at any time."""
    patch.set(Consumer, name, method)
    patch.item(consumer._ALWAYS, kind, method)


@TIER.fault(seeds("S9", "swarm", 7), lines=(86,), note="S9 on 2 of 16 seeds of swarm")
def a_completion_is_written_over(patch: Patches) -> None:
    """The server writes the rows of a turn also where the ledger has them: it checks the fence
    only, and two turns of one holder both count."""

    recorded = MemoryStore.record

    async def record(store: MemoryStore, bucket: Any, rows: Any, fence: Any) -> None:
        shelf = await store._shelf(bucket)
        lease = store._shelves.of(LEASES).live(lease_key(fence.resource))
        if lease is not None and lease.revision == fence.revision:
            for key in rows:
                if shelf.live(key) is not None:
                    shelf.remove(key)
        await recorded(store, bucket, rows, fence)

    patch.set(MemoryStore, "record", record)


@TIER.fault(seeds("S11", "busy", 2), lines=(40,), note="S11 on 4 of 4 seeds of the plan busy")
def a_hand_back_takes_a_delivery_off(patch: Patches) -> None:
    """What is handed back is counted as if it had not been delivered: it is tried for ever."""
    hand_back = MemoryMailbox.hand_back

    def uncounted(box: MemoryMailbox, position: int) -> None:
        if held := box._held.get(position):
            held.count = max(0, held.count - 1)
        hand_back(box, position)

    patch.set(MemoryMailbox, "hand_back", uncounted)


@TIER.fault(seeds("S18", "stops", 2), lines=(76,), note="S18 on 4 of 4 seeds of the plan stops")
def a_drain_above_its_cap(patch: Patches) -> None:
    """A drain takes a few more than it holds."""
    add = Collection.add

    def more(
        drain: Collection, letters: Sequence[Letter], now: float, options: BatchOptions
    ) -> None:
        add(drain, letters, now, options)
        drain._cap = options.cap + 5

    patch.set(Collection, "add", more)


@TIER.fault(seeds("S19", "braked", 2), lines=(35,), note="S19 on 4 of 4 seeds of the plan braked")
def a_hold_leaves_its_fetch_at_the_broker(patch: Patches) -> None:
    """A seat that is held does not recall its fetch: the next message is handed to it, and back."""

    def on_hold(machine: Consumer, given: Hold) -> None:
        machine.holds[given.name] = None

    _input(patch, Hold, "_on_hold", on_hold)


@TIER.fault(seeds("L1", "stops", 2), lines=(272,), note="L1 on 4 of 4 seeds of lease, 2 of 2 stops")
def the_dead_are_waited_for_too_long(patch: Patches) -> None:
    """A session that nobody renews is ended 4 s after its TTL."""
    silent = FleetView._silent

    def later(view: FleetView, node: str, now: float) -> bool:
        return silent(view, node, now - 4.0)

    patch.set(FleetView, "_silent", later)


@TIER.fault(seeds("L2", "busy", 2), lines=(272,), note="L2 on 3 of 3 seeds of the plan busy")
def a_new_holder_takes_its_time(patch: Patches) -> None:
    """A seat that was attached fetches nothing for 2 s."""

    def on_attached(machine: Consumer, given: Attached) -> None:
        machine.attached, machine._bound = True, True
        machine.quiesced = machine.deferred = False
        machine._collection.begin(given.options)
        machine._failures = consumer.Failures(given.backoff)
        if machine.state is consumer.State.DETACHED:
            machine._do(StartTimer(consumer.RETRY_PULL, 2.0))
            machine.state = consumer.State.BACKING_OFF

    _input(patch, Attached, "_on_attached", on_attached)


@TIER.fault(seeds("L7", "swarm", 6), lines=(272,), note="L7 on 6 of 10 seeds of swarm")
def a_session_that_a_short_outage_outlasts(patch: Patches) -> None:
    """A node believes in a renewal for 10 s: a leader that is lost for 8 s moves its seats."""
    patch.set(Timing, "valid_s", property(lambda timing: timing.ttl_s - 9.9))


@TIER.fault(seeds("L8", "busy", 2), lines=(138,), note="L8 on 6 of 6 seeds of the plan busy")
def a_lift_is_heard_late(patch: Patches) -> None:
    """A seat whose hold is lifted goes on 3 s later."""

    def on_lift(machine: Consumer, given: Lift) -> None:
        if given.name in machine.holds:
            del machine.holds[given.name]
            machine._end_deferral()
            machine.deferred = True
            machine._do(StartTimer(consumer.RESUME, 3.0))

    _input(patch, Lift, "_on_lift", on_lift)


@TIER.fault(seeds("L8", "busy", 3), lines=(35,), note="L8 on 4 of 4 seeds of the plan busy")
def an_unquiesce_is_heard_late(patch: Patches) -> None:
    """A seat that is quiesced no more goes on 3 s later."""

    def on_unquiesce(machine: Consumer, _: Unquiesce) -> None:
        if machine.quiesced:
            machine.quiesced, machine.deferred = False, True
            machine._do(StartTimer(consumer.RESUME, 3.0))

    _input(patch, Unquiesce, "_on_unquiesce", on_unquiesce)
