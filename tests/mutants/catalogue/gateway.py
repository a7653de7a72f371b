"""Faults of the actors around the machine: what is in flight, new lives, outcomes of turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors import gateway, mail, patience, strays, turn
from actors.gateway import Gateway
from actors.machines import consumer, signals
from actors.machines.consumer import Consumer, State
from actors.mail import MailActor
from actors.messages import ClearLife, LifeCleared
from actors.ports import Attachment, BrokerError
from actors.strays import Look, Strays
from actors.system import Address
from tests.mutants.catalogue.cases import node, queue, runtime
from tests.mutants.mutant import Patches, Tier

TIER = Tier("gateway")


async def _nothing(*_: object) -> None:
    pass


@TIER.fault(queue("detach_keeps_the_mailbox_and_its_mail"), lines=(35, 67))
def detach_drops_the_pull(patch: Patches) -> None:
    """A detach forgets its outstanding pull, which is handed the next message and drops it.
    Both halves of the defence are off: the machine's recall and the gateway's release."""

    def drop(machine: Consumer, given: signals.Detach) -> None:
        if machine.state is not State.PULLING:
            Consumer._on_detach(machine, given)
            return
        machine.attached = False
        machine.holds.clear()
        machine._unbind()
        machine.state = State.DETACHED

    def forget(actor: Gateway, entry: Any) -> None:
        entry.releasing = True
        actor._work("release", entry, _nothing())

    patch.item(consumer._ALWAYS, signals.Detach, drop)
    patch.set(Gateway, "_release", forget)


@TIER.fault(
    node("node_on_the_twin.py::test_a_held_seat_takes_nothing_and_goes_on_when_lifted"),
    lines=(35, 138),
)
def recall_is_lost(patch: Patches) -> None:
    """A brake does not end the pull that is out: the next message is in the hands of a seat
    that takes nothing."""
    patch.set(Gateway, "_recall", lambda actor, ticket: None)


@TIER.fault(
    node("actors_on_the_twin.py::test_a_settlement_is_tried_until_the_broker_takes_it"),
    queue("an_outcome_of_an_outage_is_not_lost"),
    lines=(50,),
)
def settlement_is_tried_once(patch: Patches) -> None:
    """What the broker does not take in an outage is never said again."""

    async def once(
        call: Callable[[], Any], what: str, wanted: Callable[[], bool] = patience.always
    ) -> Any:
        try:
            return await call()
        except BrokerError:
            return None

    patch.set(gateway, "until_taken", once)


@TIER.fault(
    runtime(
        "lives.py::test_a_running_handler_of_a_life_that_broke_is_ended_and_its_mail_is_worked_again"
    ),
    lines=(42,),
)
def former_life_is_not_cleared(patch: Patches) -> None:
    """A consumer that broke begins again, and what it held stays out for half an hour."""

    def at_once(actor: Gateway, wanted: ClearLife, sender: Address) -> None:
        actor.tell(sender, LifeCleared(wanted.life, wanted.owner or sender))

    patch.handler(Gateway, "on_clear", at_once)


@TIER.fault(
    runtime(
        "lives.py::test_a_dead_holders_mail_is_reclaimed_by_the_life_that_attaches_and_by_no_other"
    ),
    lines=(54, 133),
)
def dead_holder_is_not_reclaimed(patch: Patches) -> None:
    """The mail that a killed node had in hand waits for the end of its ack window."""

    async def attach(actor: Gateway, wanted: Any) -> Attachment:
        return await actor._broker.attach(wanted.mailbox, wanted.epoch)

    patch.set(Gateway, "_attach", attach)


@TIER.fault(queue("detach_answers_while_an_outcome_waits_for_the_broker"), lines=(67,))
def detach_waits_for_the_broker(patch: Patches) -> None:
    """Letting go of a seat hangs for as long as the broker is away."""
    patch.set(mail, "DETACH_ANSWER_S", 1e6)


@TIER.fault(queue("handler_failure_triggers_redelivery"), lines=(45,))
def handler_exceptions_escape(patch: Patches) -> None:
    """What a handler raises ends its turn's actor, and its seat waits for the outcome for
    ever. Both halves are off: the turn's own, and the seat's for a turn that broke."""
    outcome_of = turn._outcome_of

    def escape(ended: Any) -> Any:
        if isinstance(ended.error, Exception):
            raise ended.error
        return outcome_of(ended)

    patch.set(turn, "_outcome_of", escape)
    patch.handler(MailActor, "on_turn_failed", lambda actor, failed, sender: None)


@TIER.fault(
    runtime("looks.py::test_a_seat_that_is_long_at_work_is_looked_at_when_it_is_done"),
    lines=(281,),
)
def a_look_that_is_put_off_is_given_up(patch: Patches) -> None:
    """A watch is put off by less than its next look: behind a turn of half a minute nothing of it
    is left, and what a dead node's fetch had swallowed sits out its ack window."""

    def put_off(looks: Strays, look: Look) -> Look:
        until = max(look.until, looks._clock.monotonic() + strays.LATE_FOR_S)
        return Look(look.ticket, look.since, until)

    patch.set(Strays, "put_off", put_off)
