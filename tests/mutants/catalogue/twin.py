"""Faults of the twin: what its suite, and whoever builds on the twin, relies upon."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from actors.delivery import BUDGET, Dead, HandBack
from crewlet.broker import memory_log, memory_mailbox
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_mailbox import MemoryMailbox
from tests.mutants.catalogue.cases import queue, twin
from tests.mutants.mutant import Patches, Tier

TIER = Tier("twin")


@TIER.fault(queue("a_deferral_spends_one_delivery"), lines=(12, 40))
def free_defer(patch: Patches) -> None:
    """A deferral costs no delivery on the twin, and a message that is deferred for ever looks
    healthy until it meets the real broker."""
    hand_back = MemoryMailbox.hand_back

    def free(box: MemoryMailbox, position: int) -> None:
        if position in box._held:
            box._held[position].count -= 1
        hand_back(box, position)

    patch.set(MemoryMailbox, "hand_back", free)


@TIER.fault(
    twin("a_retry_goes_behind_waiting_mail_and_comes_back_on_time"),
    queue("a_newer_message_of_the_conversation_overtakes_a_failed_one"),
    lines=(12, 38),
)
def head_replay_after_nak(patch: Patches) -> None:
    """A failed message is handed out again before the mail that waits, as from a list."""

    def at_the_head(box: MemoryMailbox, position: int, delay_s: float) -> None:
        box.hand_back(position)

    patch.set(MemoryMailbox, "retry", at_the_head)


@TIER.fault(twin("a_hand_back_is_confirmed_at_the_head"), lines=(41,))
def defer_by_republish(patch: Patches) -> None:
    """What is deferred comes back as a new message: at the end, counted from one."""
    settle = MemoryClient._settle

    def again(client: MemoryClient, delivery: Any, verdict: Any) -> None:
        if not isinstance(verdict, HandBack):
            settle(client, delivery, verdict)
            return
        client._broker.mailbox(delivery.mailbox).settle(delivery.position)
        client._broker.publish(delivery.mailbox.topic, delivery.body, "")

    patch.set(MemoryClient, "_settle", again)


@TIER.fault(twin("the_broker_bounds_deliveries_above_the_budget"), lines=(43,))
def limit_is_the_budget(patch: Patches) -> None:
    """The broker gives up with the 25th delivery, before the client can make it a letter."""
    patch.set(memory_mailbox, "MAX_DELIVER", BUDGET)


@TIER.fault(twin("given_up_twice_it_is_stored_once"), lines=(43,))
def dead_letter_without_term(patch: Patches) -> None:
    """A dead letter is stored and its message stays: it dies again every half an hour."""
    settle = MemoryClient._settle

    def stored_only(client: MemoryClient, delivery: Any, verdict: Any) -> None:
        if isinstance(verdict, Dead):
            client._broker.bury(delivery, verdict.reason)
        else:
            settle(client, delivery, verdict)

    patch.set(MemoryClient, "_settle", stored_only)


@TIER.fault(twin("a_cancelled_fetch_strands_nothing"), lines=(34,))
def cancelled_fetch_strands(patch: Patches) -> None:
    """A fetch that is cancelled as mail comes keeps it: nobody sees it for half an hour."""
    patch.set(MemoryAttachment, "_give_back", lambda attachment, waiter: None)


@TIER.fault(twin("reclaim_hands_back_in_order_and_with_counts"), lines=(54,))
def reclaim_turns_the_order_around(patch: Patches) -> None:
    """A dead holder's mail comes back newest first."""
    reclaim = MemoryMailbox.reclaim

    def backwards(box: MemoryMailbox, spared: Container[int]) -> int:
        number = reclaim(box, spared)
        box._again = type(box._again)(sorted(box._again, reverse=True))
        return number

    patch.set(MemoryMailbox, "reclaim", backwards)


@TIER.fault(twin("the_ack_window_is_thirty_minutes"), lines=(42,))
def ack_window_is_a_minute(patch: Patches) -> None:
    """A turn that takes longer than a minute is worked a second time beside itself."""
    patch.set(memory_mailbox, "ACK_WINDOW_S", 60.0)


@TIER.fault(
    twin("a_repeated_message_id_is_stored_once"),
    queue("the_same_event_published_twice_is_stored_once"),
    lines=(48,),
)
def message_ids_mean_nothing(patch: Patches) -> None:
    """A publish that is tried again is a second message."""
    patch.set(memory_log.Namespace, "known", lambda namespace, message_id, now: None)


@TIER.fault(twin("nothing_is_swept_while_anything_is_in_flight"), lines=(42, 43))
def sweep_takes_what_is_out(patch: Patches) -> None:
    """Mail in somebody's hands is made a dead letter under them."""

    def all_held(box: MemoryMailbox) -> Any:
        return [box._delivery(held) for _, held in sorted(box._held.items())]

    patch.set(MemoryMailbox, "stuck", all_held)


@TIER.fault(twin("a_message_that_the_broker_gave_up_on_becomes_one_dead_letter"), lines=(43,))
def sweep_finds_nothing(patch: Patches) -> None:
    """What the broker gave up on stays in the mailbox for ever, seen by nobody."""
    patch.set(MemoryMailbox, "stuck", lambda box: [])
