"""What is published about a channel: two wakes, and its record. Each follows from the channel
alone, under an id of its own: who says it again says nothing new (docs/adr/0006)."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET

from crewlet.a2a.channel import Channel
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.a2a import (
    A2AChannelClosed,
    A2AChannelOpened,
    A2AMessage,
    A2AMessageSent,
    A2ARequest,
)
from crewlet.inbound.ids import derived_id


def request_id(channel_id: str) -> str:
    """The id of the question's wake."""
    return derived_id(channel_id, "request")


def opened(channel: Channel) -> Event:
    asker, target = channel.participants
    body = A2AChannelOpened(
        channel_id=channel.id,
        agent_role=asker,
        requester=asker,
        target=target,
        turn_id=channel.turn_id,
        work_key=channel.work_key,
        summary=f"{asker} opened a channel to {target}",
    )
    return Event.new(
        types.A2A_CHANNEL_OPENED,
        id=derived_id(channel.id, "opened"),
        at=channel.opened_at,
        trace=channel.trace.child(),
        body=body,
    )


def asked(channel: Channel) -> Event:
    """The record of the question."""
    return _sent(channel, channel.asker, channel.target, channel.brief, 1, channel.opened_at)


def answered(channel: Channel) -> Event:
    """The record of the answer."""
    reply = channel.reply
    assert reply is not None and reply.by
    return _sent(channel, reply.by, channel.asker, reply.text, 2, reply.at)


def _sent(
    channel: Channel, sender: str, recipient: str, text: str, number: int, at: datetime
) -> Event:
    turn = channel if channel.reply is None else channel.reply
    body = A2AMessageSent(
        channel_id=channel.id,
        agent_role=sender,
        sender=sender,
        recipient=recipient,
        text=text,
        turn_id=turn.turn_id,
        work_key=turn.work_key,
        summary=f"{sender} {'asked' if number == 1 else 'answered'} {recipient}",
    )
    return Event.new(
        types.A2A_MESSAGE_SENT,
        id=derived_id(channel.id, "sent", number),
        at=at,
        trace=turn.trace.child(),
        body=body,
    )


def request(channel: Channel) -> Event:
    """The wake of the seat that is asked. It names no conversation, so it merges with nothing."""
    body = A2ARequest(
        channel_id=channel.id,
        sender=channel.asker,
        recipient=channel.target,
        text=channel.brief,
        work_item=channel.work_item or UNSET,
    )
    return Event.new(
        types.A2A_REQUEST,
        id=request_id(channel.id),
        at=channel.opened_at,
        trace=channel.trace.child(),
        source=channel.asker,
        payload={"recipient_handle": channel.target},
        body=body,
        delegation_depth=channel.depth,
        delegation_chain=channel.chain,
        parent_turn_id=channel.turn_id,
    )


def message(channel: Channel) -> Event:
    """The wake of the seat that had asked: as deep as the question was."""
    reply = channel.reply
    assert reply is not None
    body = A2AMessage(
        channel_id=channel.id,
        recipient=channel.asker,
        target=channel.target,
        text=reply.text,
        sender=reply.by,
        question=channel.brief,
        asked_in=channel.asked_in,
        failed=not reply.by,
        work_item=channel.work_item or UNSET,
    )
    return Event.new(
        types.A2A_MESSAGE,
        id=derived_id(channel.id, "message"),
        at=reply.at,
        trace=reply.trace.child(),
        source=reply.by or "system",
        payload={"recipient_handle": channel.asker},
        body=body,
        delegation_depth=channel.depth,
        delegation_chain=(*channel.chain, channel.target),
        parent_turn_id=reply.turn_id,
    )


def closed(channel: Channel) -> Event:
    """The end, by the record's own two instants; in a turn's name only where one answered."""
    reply, closed_at = channel.reply, channel.closed_at
    assert closed_at is not None
    turn_id, work_key = (reply.turn_id, reply.work_key) if reply else ("", "")
    body = A2AChannelClosed(
        channel_id=channel.id,
        participants=channel.participants,
        messages=channel.count,
        opened_at=channel.opened_at,
        closed_at=closed_at,
        duration_s=channel.duration_s,
        summary=f"{channel.closed_by or 'system'} closed A2A channel",
        agent_role=channel.closed_by,
        closed_by=channel.closed_by,
        turn_id=turn_id,
        work_key=work_key,
        reason=channel.reason,
    )
    return Event.new(
        types.A2A_CHANNEL_CLOSED,
        id=derived_id(channel.id, "closed"),
        at=closed_at,
        trace=(channel.reply or channel).trace.child(),
        body=body,
    )
