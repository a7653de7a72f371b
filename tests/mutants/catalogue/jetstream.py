"""Faults of the client of JetStream: pulls, settlement, dead letters, reclaim, topology."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from actors.delivery import BUDGET, Dead, Delivery, HandBack, Mailbox
from actors.ports import Attachment
from crewlet.broker import dead_letters, jetstream, receipts, settle, topology
from crewlet.broker.dead_letters import DeadLetters
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.mailboxes import Mailboxes
from crewlet.broker.pull import Pull
from crewlet.broker.settle import Settler
from tests.mutants.catalogue.cases import jetstream as client
from tests.mutants.catalogue.cases import real
from tests.mutants.mutant import Patches, Tier

TIER = Tier("jetstream")


@TIER.fault(client("pull.py::test_hand_backs_are_confirmed_before_the_next_fetch"), lines=(39,))
def unconfirmed_nak(patch: Patches) -> None:
    """A hand-back is sent and not waited for: the pull behind it is served first."""

    async def said(settler: Settler, delivery: Delivery, word: bytes) -> None:
        settler._wire.send(delivery.receipt, word)

    patch.set(Settler, "_confirmed", said)


@TIER.fault(real("a_dead_letter_keeps_body_reason_and_count"), lines=(43,))
def jetstream_letter_without_term(patch: Patches) -> None:
    """A dead letter is stored and its message stays in flight: it dies again."""
    settled = Settler.settle

    async def stored_only(settler: Settler, delivery: Delivery, verdict: Any) -> None:
        if isinstance(verdict, Dead):
            await settler._dead_letters.store(delivery, verdict.reason)
        else:
            await settled(settler, delivery, verdict)

    patch.set(Settler, "settle", stored_only)


@TIER.fault(
    client("client.py::test_a_dead_letter_is_out_of_the_mailbox_only_when_it_is_stored"),
    lines=(43,),
)
def dead_letter_after_term(patch: Patches) -> None:
    """The message is taken out first: a crash before its letter is stored loses it."""
    settled = Settler.settle

    async def out_first(settler: Settler, delivery: Delivery, verdict: Any) -> None:
        if isinstance(verdict, Dead):
            await settler._confirmed(delivery, settle._TERM)
        await settled(settler, delivery, verdict)

    patch.set(Settler, "settle", out_first)


@TIER.fault(real("given_up_twice_it_is_stored_once"), lines=(43,))
def each_try_is_a_letter(patch: Patches) -> None:
    """A dead letter whose settlement is tried again is stored twice."""
    headers = dead_letters._headers
    tries: list[str] = []

    def fresh(delivery: Delivery, reason: str) -> dict[str, str]:
        made = headers(delivery, reason)
        tries.append(reason)
        return {**made, dead_letters.ID_HEADER: f"{made[dead_letters.ID_HEADER]}-{len(tries)}"}

    patch.set(dead_letters, "_headers", fresh)


@TIER.fault(real("a_cancelled_fetch_strands_nothing"), lines=(34, 35))
def cancelled_fetch_is_not_unsubscribed(patch: Patches) -> None:
    """The pull of a cancelled fetch stays at the server, and what it is sent is read by nobody."""

    async def leak(
        broker: JetStreamBroker, attachment: Attachment, most: int, wait_s: float
    ) -> Sequence[Delivery]:
        pull = jetstream._own(attachment)
        try:
            return await pull.fetch(most, wait_s)
        except BaseException:
            route, pull._route = pull._route, None
            pull.leftovers()
            if route is not None:
                route.deliver = lambda message: None
            raise

    patch.set(JetStreamBroker, "fetch", leak)


@TIER.fault(real("a_release_that_races_mail_hands_it_back_in_order"), lines=(35, 67))
def release_keeps_the_pull(patch: Patches) -> None:
    """A mailbox is let go of, and its pull stays at the server with the mail that comes."""

    async def forget(broker: JetStreamBroker, attachment: Attachment) -> None:
        pull = jetstream._own(attachment)
        pull.released = True
        broker._pulls.discard(pull)

    patch.set(JetStreamBroker, "release", forget)


@TIER.fault(real("a_release_that_races_mail_hands_it_back_in_order"), lines=(35, 83))
def released_mail_is_dropped(patch: Patches) -> None:
    """What was on its way to a mailbox that is let go of is nobody's for half an hour."""

    async def end(broker: JetStreamBroker, pull: Pull) -> None:
        await pull.quiet()
        pull.leftovers()

    patch.set(JetStreamBroker, "_hand_back", end)


@TIER.fault(real("a_cancelled_fetch_strands_nothing"), lines=(34, 35))
def pull_ends_without_a_barrier(patch: Patches) -> None:
    """A pull that is ended is dropped at once: what the server had sent already is lost on its
    way."""

    async def at_once(pull: Pull) -> None:
        route, pull._route = pull._route, None
        if route is not None:
            pull._wire.drop(route)

    patch.set(Pull, "_take_route", at_once)


@TIER.fault(real("the_broker_bounds_deliveries_above_the_budget"), lines=(43,))
def max_deliver_is_the_budget(patch: Patches) -> None:
    """The server gives up with the 25th delivery, before the client can make it a letter."""
    patch.set(topology, "MAX_DELIVER", BUDGET)


@TIER.fault(real("reclaim_hands_back_in_order_and_with_counts"), lines=(54,))
def jetstream_reclaims_backwards(patch: Patches) -> None:
    """A dead holder's mail comes back newest first: naks return in the order of their arrival."""
    reclaim = Mailboxes.reclaim

    async def backwards(
        boxes: Mailboxes, mailbox: Mailbox, word: Callable[[int], bytes | None]
    ) -> int:
        out: list[int] = []
        await reclaim(boxes, mailbox, out.append)  # type: ignore[arg-type]
        for last in reversed(out):
            await reclaim(boxes, mailbox, lambda at, last=last: word(at) if at == last else None)
        return len(out)

    patch.set(Mailboxes, "reclaim", backwards)


@TIER.fault(real("a_hand_back_is_confirmed_at_the_head"), lines=(54, 57))
def count_is_the_consumers_turn(patch: Patches) -> None:
    """The wrong number of the ack subject is read: every message looks often delivered."""
    read = receipts.read

    def wrong(subject: str) -> Any:
        found = read(subject)
        return found and msgspec.structs.replace(found, count=found.turn)

    patch.set(receipts, "read", wrong)


@TIER.fault(real("a_message_that_the_broker_gave_up_on_becomes_one_dead_letter"), lines=(43,))
def jetstream_sweep_is_missing(patch: Patches) -> None:
    """What the server gave up on stays in its stream for ever, and nobody is told."""

    async def nothing(api: Any, mailbox: Mailbox, info: Any) -> Sequence[Delivery]:
        return []

    patch.set(jetstream, "stuck", nothing)


@TIER.fault(real("nothing_is_pushed_ahead_of_a_fetch"), lines=(34, 35))
def pull_asks_for_more(patch: Patches) -> None:
    """A pull prefetches: mail sits in the hands of a seat that has no time for it."""
    request = Pull._request

    def greedy(pull: Pull, expiry_s: float) -> bytes:
        asked = msgspec.json.decode(request(pull, expiry_s))
        return msgspec.json.encode({**asked, "batch": asked["batch"] + 5})

    patch.set(Pull, "_request", greedy)


@TIER.fault(real("a_repeated_message_id_is_stored_once"), lines=(48,))
def publish_has_no_id(patch: Patches) -> None:
    """A publish that is tried again is a second message: the server was told no id."""
    publish = JetStreamBroker.publish

    async def anonymous(
        broker: JetStreamBroker, topic: str, body: bytes, *, message_id: str, within_s: float = 5.0
    ) -> Any:
        return await publish(broker, topic, body, message_id="")

    patch.set(JetStreamBroker, "publish", anonymous)


@TIER.fault(real("a_hand_back_is_confirmed_at_the_head"), lines=(39, 41))
def hand_back_goes_behind(patch: Patches) -> None:
    """A hand-back is sent with a delay: newer mail overtakes it."""
    settled = Settler.settle

    async def later(settler: Settler, delivery: Delivery, verdict: Any) -> None:
        if isinstance(verdict, HandBack):
            await settler._confirmed(delivery, settle._later(0.2))
        else:
            await settled(settler, delivery, verdict)

    patch.set(Settler, "settle", later)


@TIER.fault(real("letters_of_two_groups_are_two"), lines=(23, 43))
def letters_are_named_by_position(patch: Patches) -> None:
    """The same message that dies in two groups is one letter: the second is lost."""
    patch.set(DeadLetters, "store", _by_position)


async def _by_position(letters: DeadLetters, delivery: Delivery, reason: str) -> None:
    headers = {**dead_letters._headers(delivery, reason)}
    headers[dead_letters.ID_HEADER] = f"dead-{delivery.position}"
    topic = dead_letters.topics.dead_letter(delivery.mailbox)
    await letters._api.ask(topic, delivery.body, headers=headers, wait_s=dead_letters.STORE_S)
