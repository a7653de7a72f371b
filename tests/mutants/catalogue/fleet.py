"""M1 to M9: faults of who holds a seat, and of what a holder may do. Seeds of the simulation see
them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from actors import handoffs, turn
from actors.delivery import Ack, Fence
from actors.handoffs import SeatSupervisor
from actors.machines import fleet_view, lease
from actors.machines.lease import SessionMachine
from actors.tenure import Fenced, Lease, Tenure
from crewlet.broker.memory_store import MemoryStore
from crewlet.coordination.store import LEASES, lease_key
from crewlet.inbound.ledger import Ledger
from tests.mutants.catalogue.cases import seeds
from tests.mutants.mutant import Patches, Tier

TIER = Tier("simulation")


@TIER.fault(seeds("S4", "swarm", 2), lines=(272, 280), note="S4 on 12 of 12 seeds of swarm")
def m1_completion_without_fence(patch: Patches) -> None:
    """The client writes the rows of a finished turn without naming the fence."""
    record = Ledger.record

    async def unfenced(
        ledger: Ledger,
        seat: str,
        event_ids: Any,
        *,
        turn_id: str,
        node: str,
        at: Any,
        fence: Fence | None = None,
    ) -> None:
        await record(ledger, seat, event_ids, turn_id=turn_id, node=node, at=at)

    patch.set(Ledger, "record", unfenced)


@TIER.fault(
    seeds("S4", "zombies", 24),
    lines=(272, 280),
    note="S4 on 2 of 24 seeds of the plan zombies: a record has to be on its way as its node stops",
)
def m1_fence_is_not_checked(patch: Patches) -> None:
    """The fence is sent, and the server writes the rows of a zombie all the same."""

    record = MemoryStore.record

    async def unchecked(store: MemoryStore, bucket: Any, rows: Any, fence: Fence) -> None:
        row = store._shelves.of(LEASES).live(lease_key(fence.resource))
        now = fence if row is None else replace(fence, revision=row.revision)
        await record(store, bucket, rows, now)

    patch.set(MemoryStore, "record", unchecked)


@TIER.fault(seeds("S2", "lease", 2), lines=(272,), note="S2 on 12 of 12 seeds of lease")
def m3_take_over_before_ttl(patch: Patches) -> None:
    """A session is ended by its peers after half of its TTL."""
    patch.set(fleet_view, "patience_s", lambda about, own_ttl_s: own_ttl_s / 2)


@TIER.fault(seeds("S1", "lease", 2), lines=(271, 272), note="S1 on 12 of 12 seeds of lease")
def m4_put_instead_of_cas(patch: Patches) -> None:
    """A row of a lease is written whatever is there: whoever writes last has the seat."""
    create, update = MemoryStore.create, MemoryStore.update

    async def made(store: MemoryStore, bucket: Any, key: str, value: bytes) -> int:
        if bucket is not LEASES:
            return await create(store, bucket, key, value)
        return (await store._shelf(bucket, key)).write(key, value)

    async def put(store: MemoryStore, bucket: Any, key: str, value: bytes, revision: int) -> int:
        if bucket is not LEASES:
            return await update(store, bucket, key, value, revision)
        return (await store._shelf(bucket, key)).write(key, value)

    patch.set(MemoryStore, "create", made)
    patch.set(MemoryStore, "update", put)


@TIER.fault(seeds("S1", "lease", 2), lines=(272,), note="S1 on 12 of 12 seeds of lease")
def m5_epoch_of_a_seat_stays(patch: Patches) -> None:
    """A seat that changes hands keeps its epoch: two holders go by the same number."""
    claim = handoffs.claim

    def stays(handle: str, row: Lease | None, *, owner: str, node: str, session: int) -> Lease:
        made = claim(handle, row, owner=owner, node=node, session=session)
        return made if row is None else replace(made, epoch=row.epoch)

    patch.set(handoffs, "claim", stays)


@TIER.fault(
    seeds("S1", "lease", 2),
    lines=(272,),
    note="S1 on 12 of 12 seeds of lease",
)
def m5_epoch_of_a_session_stays(patch: Patches) -> None:
    """A node that begins another session goes by the number of its last one."""
    take = SessionMachine._take

    def stays(machine: SessionMachine, row: Lease | None) -> None:
        take(machine, row if row is None else replace(row, epoch=row.epoch - 1))

    patch.set(SessionMachine, "_take", stays)


def acks_what_was_refused(patch: Patches) -> None:
    outcome_of = turn._outcome_of

    def done(ended: Any) -> Any:
        return Ack() if isinstance(ended.error, Fenced) else outcome_of(ended)

    patch.set(turn, "_outcome_of", done)


@TIER.fault(
    seeds("S7", "zombies", 3),
    lines=(280,),
    note="S7 on 11 of 12 seeds of the plan zombies; with the defences off and no such "
    "acknowledgement on 0 of 8",
)
def m6_zombie_acks_and_nothing_stops_it(patch: Patches) -> None:
    """A turn whose completion was refused is acknowledged, with the other two defences off: the
    gate at each settlement, and the supervisor that takes a seat down whose session is over."""
    acks_what_was_refused(patch)
    patch.set(Tenure, "may_settle", lambda tenure, now: not tenure.ended)
    patch.handler(SeatSupervisor, "on_session_ended", lambda actor, ended, sender: None)


@TIER.fault(seeds("S3", "reborn", 16), lines=(272,), note="S3 on 3 of 12 seeds of the plan reborn")
def m7_reply_age_ignored(patch: Patches) -> None:
    """A session counts from when its node heard that it has it, however late that was."""
    taken = SessionMachine._on_taken

    def fresh(machine: SessionMachine, row: Lease, sent: float, now: float) -> None:
        taken(machine, row, now, now)

    patch.set(SessionMachine, "_on_taken", fresh)


@TIER.fault(
    seeds("S3", "unheard", 3), lines=(271, 272), note="S3 on 11 of 12 seeds of the plan unheard"
)
def m8_read_extends_the_lease(patch: Patches) -> None:
    """A node that reads its own row and finds itself there believes in it anew."""
    compare = SessionMachine._compare

    def renewed(machine: SessionMachine, row: Lease | None, now: float) -> None:
        compare(machine, row, now)
        if row is not None and machine.state is lease.State.HELD:
            machine._on_written(row, now, now)

    patch.set(SessionMachine, "_compare", renewed)


def starts_under_any_session(patch: Patches) -> None:
    patch.set(Tenure, "may_start", lambda tenure, now: tenure.may_settle(now))


@TIER.fault(seeds("S3", "stops", 8), lines=(272,), note="S3 on 7 of 12 seeds of the plan stops")
def m9_no_turn_gate(patch: Patches) -> None:
    """Neither the seat asks nor does its supervisor hold it."""
    starts_under_any_session(patch)

    def confident(supervisor: SeatSupervisor, *, on: bool) -> None:
        supervisor._doubted = False

    patch.set(SeatSupervisor, "_doubt", confident)
