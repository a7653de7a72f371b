"""From a partition to the one shape that every handler gets."""

from __future__ import annotations

from datetime import datetime

from actors.delivery import Letter
from crewlet.company import Seat
from crewlet.events import Trace
from crewlet.events import catalogue as types
from crewlet.events.fresh import new_id
from crewlet.inbound.charging import charge_of
from crewlet.inbound.coalesce import Trigger
from crewlet.inbound.constituent import Constituent
from crewlet.inbound.letters import conversation_identity, event_of, partition_key
from crewlet.turn import Conversation, SeatView, Turn, TurnEvent


def new_turn_id() -> str:
    return f"turn-{new_id()}"


def build_turn(
    letters: tuple[Letter, ...],
    trigger: Trigger,
    *,
    seat: Seat,
    company: str,
    trace: Trace,
    deadline: datetime | None,
    turn_id: str = "",
    timeout_s: float = 0.0,
) -> Turn:
    """One turn for the letters of one conversation, in their order, and the trigger of them."""
    first = event_of(letters[0])
    stated = [letter.headroom for letter in letters if letter.headroom is not None]
    charge = charge_of(trigger.constituents)
    pairs = zip(letters, trigger.constituents, strict=True)
    return Turn(
        turn_id=turn_id or new_turn_id(),
        seat=SeatView(handle=seat.handle, name=seat.name, unit=seat.unit, goal=seat.goal),
        company=company,
        conversation=Conversation(
            partition_key=partition_key(first),
            conversation_identity=conversation_identity(first),
        ),
        events=tuple(_turn_event(letter, one) for letter, one in pairs),
        work_item=charge.work_item,
        work_item_basis=charge.basis,
        digest=trigger.digest,
        recon=trigger.recon,
        addressed=trigger.addressed,
        delegation_depth=trigger.delegation.depth,
        delegation_chain=trigger.delegation.chain,
        parent_turn_id=trigger.delegation.parent_turn_id,
        headroom=min(stated) if stated else None,
        attempt=max(letter.delivery.count or 1 for letter in letters),
        traceparent=trace.traceparent,
        deadline=deadline,
        timeout_s=timeout_s,
    )


def is_scheduled(letters: tuple[Letter, ...]) -> bool:
    """Whether a schedule says how long a turn of these may take."""
    return any(_stated_s(letter) > 0 for letter in letters)


def timeout_of(letters: tuple[Letter, ...], timeout_s: float) -> float:
    """How many seconds a turn of these letters may take: as long as its handler says, unless one
    of them (a schedule's task) asks for fewer."""
    return min([timeout_s, *(one for one in map(_stated_s, letters) if one > 0)])


def _stated_s(letter: Letter) -> float:
    """What a schedule's task asks for; 0 for anything else."""
    event = event_of(letter)
    return event.value("timeout_s", float, 0.0) if event.type == types.TASK_ASSIGNED else 0.0


def _turn_event(letter: Letter, one: Constituent) -> TurnEvent:
    return TurnEvent(
        id=one.id,
        type=one.type,
        timestamp=one.timestamp,
        source=one.source,
        event_type=one.event_type,
        sender=one.sender,
        subject=one.subject,
        body=one.body,
        salient_body=one.salient_body,
        message=one.message,
        recon=one.recon,
        addressed=one.addressed,
        metadata=one.metadata,
        headroom=letter.headroom,
    )
