"""M2 and M10 to M24: faults of what becomes of mail. Seeds of the simulation see them."""

from __future__ import annotations

import asyncio
from typing import Any

from actors import turn
from actors.custody import Custody
from actors.delivery import BUDGET, Dead, Defer, Done, HandBack, Nak, Retry
from actors.gateway import Gateway
from actors.machines import collection, consumer, signals
from actors.machines.budget import Failures
from actors.machines.consumer import Consumer, State
from actors.simulation.hold import Hold
from actors.simulation.links import LinkedBroker
from crewlet.broker import memory_mailbox, memory_server
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_mailbox import Mail, MemoryMailbox, Waiter
from crewlet.inbound.ledger import Ledger
from tests.mutants.catalogue.cases import seeds
from tests.mutants.mutant import Patches, Tier

TIER = Tier("simulation")


@TIER.fault(seeds("S7", "busy", 3), lines=(36, 79), note="S7 on 12 of 12 seeds of the plan busy")
def m2_ack_before_completion(patch: Patches) -> None:
    """Mail is acknowledged as its turn starts."""
    run_next = Consumer._run_next

    def eager(machine: Consumer) -> None:
        letters = machine._waiting[0].letters
        done = tuple((letter.delivery, Done()) for letter in letters)
        machine._do(signals.Settle(done, confirmed=False))
        run_next(machine)

    patch.set(Consumer, "_run_next", eager)


@TIER.fault(
    seeds("S10", "busy", 4),
    lines=(86, 89),
    note="S10 on 12 of 12 seeds of the plan busy, 3 of 12 of mail",
)
def m10_no_ledger_check(patch: Patches) -> None:
    """A turn does not ask whether its mail was worked before."""

    async def nobody(ledger: Ledger, seat: str, event_ids: Any) -> Any:
        return {}

    patch.set(Ledger, "worked", nobody)


@TIER.fault(
    seeds("L4", "busy", 4),
    lines=(39, 40),
    note="L4 on 8 of 12 seeds of the plan busy, 3 of 12 of mail",
)
def m11_defer_omitted(patch: Patches) -> None:
    """A deferral tells the broker nothing: its mail comes back when the ack window ends."""
    verdicts_of = Consumer._verdicts_of

    def silent(machine: Consumer, deliveries: Any, outcome: Any) -> Any:
        verdicts = verdicts_of(machine, deliveries, outcome)
        return [] if isinstance(outcome, Defer) else verdicts

    patch.set(Consumer, "_verdicts_of", silent)


@TIER.fault(
    seeds("S15", "busy", 3),
    lines=(41,),
    note="S15 on 11 of 12 seeds of the plan busy, 9 of 12 of mail",
)
def m12_defer_by_republish(patch: Patches) -> None:
    """What is handed back is stored anew, at the end, and counts from one."""
    settle = MemoryClient._settle

    def again(client: MemoryClient, delivery: Any, verdict: Any) -> None:
        if not isinstance(verdict, HandBack):
            settle(client, delivery, verdict)
            return
        broker = client._broker
        box, topic = broker.mailbox(delivery.mailbox), delivery.mailbox.topic
        now = asyncio.get_running_loop().time()
        position = broker._log.of(topic).append(topic, delivery.message_id, delivery.body, now)
        box.settle(delivery.position)
        box.put(Mail(position, delivery.message_id, delivery.body, broker._now()))

    patch.set(MemoryClient, "_settle", again)


@TIER.fault(
    seeds("S13", "busy", 4),
    lines=(39, 84),
    note="S13 on 12 of 12 seeds of the plan busy, 2 of 12 of mail",
)
def m13_defer_in_reverse(patch: Patches) -> None:
    """What goes back to the head goes back last first."""
    undispatched, verdicts_of = Consumer._undispatched, Consumer._verdicts_of

    def rest(machine: Consumer, reason: str = "let go") -> Any:
        return undispatched(machine, reason)[::-1]

    def backwards(machine: Consumer, deliveries: Any, outcome: Any) -> Any:
        verdicts = verdicts_of(machine, deliveries, outcome)
        return verdicts[::-1] if isinstance(outcome, Defer) else verdicts

    patch.set(Consumer, "_undispatched", rest)
    patch.set(Consumer, "_verdicts_of", backwards)


@TIER.fault(
    seeds("S14", "busy", 3),
    lines=(38,),
    note="S14 on 12 of 12 seeds of the plan busy, 9 of 12 of mail",
)
def m14_nak_at_the_head(patch: Patches) -> None:
    """What failed goes back to the head at once."""
    give_back = consumer.give_back

    def at_once(one: Any, reason: str, retry_after_s: float | None = None) -> Any:
        verdict = give_back(one, reason, retry_after_s)
        return HandBack() if isinstance(verdict, Retry) else verdict

    patch.set(consumer, "give_back", at_once)


@TIER.fault(
    seeds("S14", "busy", 4),
    lines=(37,),
    note="S14 on 12 of 12 seeds of the plan busy, 5 of 12 of mail",
)
def m14_backoff_is_flat(patch: Patches) -> None:
    """Each failure waits as long as the first. The checker reckons with `backoff_s` itself."""
    failed = Failures.failed

    def flat(failures: Failures, position: int) -> float:
        failed(failures, position)
        return failures._policy.first_s

    patch.set(Failures, "failed", flat)


@TIER.fault(
    seeds("S20", "mail", 3),
    lines=(34, 35),
    note="S20 on 11 of 12 seeds of mail, and S13 on the other",
)
def m15_recalled_fetch_stays_at_the_broker(patch: Patches) -> None:
    """A fetch that was recalled is not unsubscribed: the next message is handed to nobody."""
    leave, forsake = MemoryMailbox.leave, MemoryMailbox.forsake
    parked: dict[Waiter, None] = {}

    def recall(attachment: MemoryAttachment) -> None:
        waiter = attachment._waiter
        if waiter is None:
            return
        if attachment._released:
            forsake(attachment._box, waiter)
        else:
            parked[waiter] = None
        waiter.wake()

    def stays(box: MemoryMailbox, waiter: Waiter) -> None:
        if waiter not in parked:
            leave(box, waiter)

    def serve(box: MemoryMailbox) -> None:
        while box._waiters:
            waiter = box._waiters[0]
            if waiter in parked or not waiter.woken.done():
                waiter.sent = box.take(waiter.most)
                if not waiter.sent:
                    return
            parked.pop(box._waiters.popleft(), None)
            waiter.wake()
        box._try_in_vain()

    patch.set(MemoryAttachment, "recall", recall)
    patch.set(MemoryMailbox, "leave", stays)
    patch.set(MemoryMailbox, "serve", serve)


def _no_reclaim(patch: Patches) -> None:
    async def attach(actor: Gateway, wanted: Any) -> Any:
        return await actor._broker.attach(wanted.mailbox, wanted.epoch)

    patch.set(Gateway, "_attach", attach)


def _no_looks(patch: Patches) -> None:
    patch.set(Custody, "_begin_looking", lambda actor, entry: None)


@TIER.fault(
    seeds("L3", "lease", 24),
    lines=(54, 133),
    note="L3 on 3 of 24 seeds of lease: the looks for strays do most of its work a second later",
)
def m16_no_orphan_scan(patch: Patches) -> None:
    """Whoever takes over from a dead holder does not hand back what that one had in flight."""
    _no_reclaim(patch)


@TIER.fault(
    seeds("L3", "sleepers", 24),
    lines=(281,),
    note="L3 on 3 of 24 seeds of the plan sleepers: a fetch has to outlive its node's session",
)
def m17_no_looks_for_strays(patch: Patches) -> None:
    """What a fetch of the dead was given after the reclaim is looked for by nobody."""
    _no_looks(patch)


@TIER.fault(
    seeds("L3", "unheard", 6),
    lines=(42, 50),
    note="L3 on 7 of 12 seeds of the plan unheard, 1 of 20 of mail",
)
def m17_no_repair_after_reconnect(patch: Patches) -> None:
    """A client that was cut off does not ask what became of its last words and fetches."""

    async def nothing(broker: LinkedBroker, hold: Hold) -> None:
        return

    patch.set(LinkedBroker, "repair", nothing)


@TIER.fault(
    seeds("L3", "lease", 4),
    lines=(54, 133, 281),
    note="L3 on 11 of 12 seeds of lease, and L1 on the other",
)
def m16_m17_neither_scan_nor_looks(patch: Patches) -> None:
    """Neither is what a dead holder had in flight handed back, nor is it looked for later."""
    _no_reclaim(patch)
    _no_looks(patch)


@TIER.fault(
    seeds("S12", "worn", 16, minutes=2),
    lines=(43,),
    note="S12 on 2 of 16 seeds of the plan worn: whoever attaches next sweeps the rest",
)
def m18_broker_limit_is_the_budget(patch: Patches) -> None:
    """The broker gives up with the 25th delivery."""
    patch.set(memory_mailbox, "MAX_DELIVER", BUDGET)


@TIER.fault(
    seeds("S12", "worn", 16, minutes=2),
    lines=(43,),
    note="S12 on 4 of 16 seeds of the plan worn: a process has to die at a last delivery",
)
def m18_and_no_sweep(patch: Patches) -> None:
    """The broker gives up with the 25th delivery, and nobody looks for what it gave up on."""
    patch.set(memory_mailbox, "MAX_DELIVER", BUDGET)
    patch.set(MemoryMailbox, "stuck", lambda box: [])


@TIER.fault(seeds("S6", "buried", 6), lines=(43,), note="S6 on 8 of 12 seeds of the plan buried")
def m19_dead_letter_after_term(patch: Patches) -> None:
    """The message is taken out first, and its letter stored a moment later: whoever dies
    between the two loses it."""
    settle = MemoryClient._settle

    def out_first(client: MemoryClient, delivery: Any, verdict: Any) -> None:
        if not isinstance(verdict, Dead):
            settle(client, delivery, verdict)
            return
        settle(client, delivery, Done())

        def then() -> None:
            if client.connected:
                client._broker.bury(delivery, verdict.reason)

        asyncio.get_running_loop().call_later(0.05, then)

    patch.set(MemoryClient, "_settle", out_first)


@TIER.fault(
    seeds("S8", "swarm", 10),
    lines=(279,),
    note="S8 on 6 of 12 seeds of swarm: the others try no seat that is not there",
)
def m20_publish_before_ensure(patch: Patches) -> None:
    """A publish to a seat whose mailbox nobody made is acknowledged, and dropped."""
    patch.set(memory_server, "mailbox_of", lambda topic: None)


@TIER.fault(
    seeds("S16", "busy", 4),
    lines=(80,),
    note="S16 on 12 of 12 seeds of the plan busy, 4 of 12 of mail",
)
def m21_one_failure_naks_the_drain(patch: Patches) -> None:
    """One conversation that fails takes the others of its drain along."""

    def all_of_it(machine: Consumer, given: signals.Ended) -> None:
        partition = machine._running
        if partition is not None and isinstance(given.outcome, Nak):
            for other in machine._waiting:
                machine._settle(machine._verdicts(other, given.outcome))
            machine._waiting = []
        Consumer._on_ended(machine, given)

    patch.item(consumer._ALWAYS, signals.Ended, all_of_it)


@TIER.fault(
    seeds("S17", "busy", 4),
    lines=(81,),
    note="S17 on 10 of 12 seeds of the plan busy, and S13 on the others; 6 of 12 of mail",
)
def m22_newest_first_dispatch(patch: Patches) -> None:
    """The last conversation to speak is worked first."""
    partitions = collection.partitions
    patch.set(collection, "partitions", lambda drain: partitions(drain)[::-1])


@TIER.fault(
    seeds("S5", "busy", 4),
    lines=(83, 139),
    note="S5 on 12 of 12 seeds of the plan busy, 2 of 16 of mail",
)
def m23_hold_ignored_while_collecting(patch: Patches) -> None:
    """A hold that lands while a drain is collected does not keep it from being worked."""

    def pulled(machine: Consumer, given: signals.Pulled) -> None:
        holds, machine.holds = machine.holds, {}
        Consumer._on_pulled(machine, given)
        machine.holds = holds

    patch.item(consumer._TABLE, (State.COLLECTING, signals.Pulled), pulled)


@TIER.fault(
    seeds("S12", "busy", 4),
    lines=(45, 79),
    note="S12 on 12 of 12 seeds of the plan busy, 7 of 12 of mail",
)
def m24_failed_turn_is_run_again(patch: Patches) -> None:
    """What a handler raises escapes to an actor base that runs the message once more: one
    delivery, two turns."""
    run = turn._run

    async def twice(wanted: turn.RunTurn) -> Any:
        outcome = await run(wanted)
        return await run(wanted) if isinstance(outcome, Nak) else outcome

    patch.set(turn, "_run", twice)


@TIER.fault(
    seeds("L4", "busy", 4),
    lines=(45,),
    note="L4 on 12 of 12 seeds of the plan busy, 6 of 12 of mail",
)
def m24_handler_exceptions_escape(patch: Patches) -> None:
    """What a handler raises ends its turn's actor, and its seat waits for the outcome for ever."""
    on_ended = turn.TurnActor.on_ended

    def lost(actor: turn.TurnActor, ended: Any, sender: Any) -> None:
        if not isinstance(ended.value, Nak):
            on_ended(actor, ended, sender)

    patch.handler(turn.TurnActor, "on_ended", lost)
