"""Faults of the queue and of publishing."""

from __future__ import annotations

from typing import Any

from actors.delivery import Mailbox
from actors.machines import signals
from crewlet.events import Event
from crewlet.queue import publisher as publishing
from crewlet.queue.event_queue import BOX, EventQueue
from crewlet.queue.publisher import Publisher
from tests.mutants.catalogue.cases import publisher, queue
from tests.mutants.mutant import Patches, Tier

TIER = Tier("queue")


@TIER.fault(queue("a_hold_is_keyed_by_its_pair"), lines=(61, 136))
def hold_keyed_by_topic_only(patch: Patches) -> None:
    """A hold of one group's mailbox lies over every group of the topic."""
    brake = EventQueue._brake

    async def all_groups(client: EventQueue, topic: str, group: str, signal: Any) -> Any:
        if isinstance(signal, signals.Hold | signals.Lift):
            for box in [box for box in client._known if box.topic == topic]:
                if box != Mailbox(topic, group):
                    await client._check_live().brake(str(box), BOX, signal)
        return await brake(client, topic, group, signal)

    patch.set(EventQueue, "_brake", all_groups)


@TIER.fault(queue("a_hold_may_be_taken_before_anything_attaches"), lines=(136, 137))
def early_hold_is_forgotten(patch: Patches) -> None:
    """A hold that is taken before its mailbox is attached does not lie over the attachment."""
    consumer = EventQueue._consumer

    async def forgetful(client: EventQueue, mailbox: Mailbox) -> None:
        client._early_holds.pop(mailbox, None)
        await consumer(client, mailbox)

    patch.set(EventQueue, "_consumer", forgetful)


@TIER.fault(queue("a_late_subscription_inherits_the_pause"), lines=(72,))
def late_subscription_is_not_paused(patch: Patches) -> None:
    """A client that drains starts new work for whoever subscribes meanwhile."""
    consumer = EventQueue._consumer

    async def awake(client: EventQueue, mailbox: Mailbox) -> None:
        paused, client._paused = client._paused, False
        await consumer(client, mailbox)
        client._paused = paused

    patch.set(EventQueue, "_consumer", awake)


@TIER.fault(queue("a_listener_that_fails_prevents_nothing"), lines=(207,))
def listener_fails_the_publish(patch: Patches) -> None:
    """Telemetry that raises makes a stored event look as if it were not."""

    def tell(client: Publisher, topic: str, event: Event) -> None:
        for listener in client._listeners:
            listener(topic, event)

    patch.set(Publisher, "_tell", tell)


@TIER.fault(
    publisher("test_listeners_hear_after_the_broker_has_the_event_and_not_before"), lines=(207,)
)
def listeners_hear_too_early(patch: Patches) -> None:
    """Listeners are told of an event that the broker may still refuse."""
    until_known = Publisher._until_known

    async def told_first(
        client: Publisher, topic: str, body: bytes, message_id: str, within_s: float
    ) -> Any:
        client._tell(topic, publishing.decode(body))
        return await until_known(client, topic, body, message_id, within_s)

    patch.set(Publisher, "_until_known", told_first)


@TIER.fault(publisher("test_a_lost_answer_is_asked_for_again_under_the_same_id"), lines=(48, 130))
def retry_under_a_new_id(patch: Patches) -> None:
    """A publish whose answer was lost is stored twice: its retry is a second message."""
    until_known = Publisher._until_known

    async def renamed(
        client: Publisher, topic: str, body: bytes, message_id: str, within_s: float
    ) -> Any:
        broker, tries = client._broker, []

        class Renaming:
            async def publish(
                self, topic: str, body: bytes, *, message_id: str, within_s: float
            ) -> Any:
                tries.append(message_id)
                return await broker.publish(topic, body, message_id=f"{message_id}-{len(tries)}")

        client._broker = Renaming()  # type: ignore[assignment]
        try:
            return await until_known(client, topic, body, message_id, within_s)
        finally:
            client._broker = broker

    patch.set(Publisher, "_until_known", renamed)


@TIER.fault(publisher("test_an_origin_is_never_written_over"), lines=(175,))
def origin_is_written_over(patch: Patches) -> None:
    """Every node that passes an event on says that it comes from itself."""
    import msgspec

    def mine(event: Event, node_id: str) -> Event:
        return msgspec.structs.replace(event, node=node_id)

    patch.set(Event, "stamped", mine)


@TIER.fault(
    publisher("test_an_event_that_is_too_large_is_refused_before_anything_is_sent"), lines=(49,)
)
def any_size_is_sent(patch: Patches) -> None:
    """An event over the limit goes to the broker, which ends the connection."""
    patch.set(publishing, "MAX_EVENT_BYTES", 10**9)
