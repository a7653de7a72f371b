"""A channel between two seats: one question, its answer, its end. A machine without I/O.

`step` takes what happened to the channel as it is after it. What may not happen in a state raises,
and the channel is as it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crewlet.errors import ReplyRefused
from crewlet.events import Trace
from crewlet.events.work_items import WorkItem

_ID: Final = re.compile(r"a2a-[0-9a-f]{12}")

State: TypeAlias = Literal["open", "answered", "closed"]
"""open: asked, and nothing said. answered: there is a word for the asker, who may not have it yet.
closed: the asker has it, or is not there to be told."""


class Reply(Struct, frozen=True, kw_only=True):
    """The word that the asker is owed. `by` is the seat that answers; empty where the system says
    that no answer comes, and then there is no turn behind it. `epoch` is that of the answering
    seat's tenure: of two who take themselves for its owner, the later is right. `proof` is the
    event that the ledger has as worked once the answering turn has completed."""

    text: str
    at: datetime
    trace: Trace
    by: str = ""
    turn_id: str = ""
    work_key: str = ""
    epoch: int = 0
    proof: str = ""


class Channel(Struct, frozen=True, kw_only=True):
    """The record. `depth` and `chain` are those of the request; `turn_id`, `work_key`,
    `asked_in` (a conversation) and `work_item` those of the turn that asked. What was said is
    kept until it has been handed on, and no longer. `announced`: its end is in the record of
    events."""

    id: str
    asker: str
    target: str
    brief: str
    opened_at: datetime
    trace: Trace
    depth: int
    chain: tuple[str, ...]
    turn_id: str
    work_key: str
    asked_in: str = ""
    work_item: WorkItem | None = None
    state: State = "open"
    reply: Reply | None = None
    reason: str = ""
    closed_at: datetime | None = None
    announced: bool = False

    @property
    def participants(self) -> tuple[str, str]:
        return self.asker, self.target

    @property
    def count(self) -> int:
        """Messages: the question, and the answer where a seat gave one."""
        return 2 if self.closed_by else 1

    @property
    def closed_by(self) -> str:
        """The seat whose answer closes it; empty: the system does, or nobody yet."""
        return self.reply.by if self.reply is not None else ""

    @property
    def given_up(self) -> bool:
        """The system has said that no answer comes."""
        return self.reply is not None and not self.reply.by

    @property
    def quiet_since(self) -> datetime:
        """When something last happened between the two."""
        return self.opened_at if self.reply is None else max(self.opened_at, self.reply.at)

    @property
    def duration_s(self) -> float:
        """Between its own two instants; 0 while it is open."""
        return (self.closed_at - self.opened_at).total_seconds() if self.closed_at else 0.0


class Owed(Struct, frozen=True):
    """There is a word for the asker: an answer, or that none comes."""

    reply: Reply


class Told(Struct, frozen=True):
    """The asker has it in its inbox, or has no inbox any more."""

    at: datetime


class Withdrawn(Struct, frozen=True):
    """The question reached nobody, and the asking turn was told so."""

    at: datetime
    reason: str


class Announced(Struct, frozen=True):
    """Its end is in the record of events."""


Input: TypeAlias = Owed | Told | Withdrawn | Announced


class Illegal(Exception):
    """What may not happen in this state: a bug of ours, not of a seat."""


def step(channel: Channel, given: Input) -> Channel:
    """The channel after `given`; the very same one where that changes nothing. ReplyRefused for an
    answer that is not taken, Illegal for what cannot happen."""
    transition = TRANSITIONS.get((channel.state, type(given)))
    if transition is None:
        raise Illegal(f"{type(given).__name__} for {channel.id}, which is {channel.state}")
    return transition(channel, given)


def channel_id(asker: str, work_key: str, target: str, ordinal: int) -> str:
    """The same for every run of the same turn: its `ordinal`-th question is asked once."""
    text = f"{asker}\0{work_key}\0{target}\0{ordinal}"
    return f"a2a-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def is_channel_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


# -- what follows ---------------------------------------------------------------------


def _owe(channel: Channel, given: Owed) -> Channel:
    _check_participant(channel, given.reply)
    return replace(channel, state="answered", reply=given.reply)


def _owe_again(channel: Channel, given: Owed) -> Channel:
    """The answer of a turn stands only once the turn has completed: until then a later run of it
    says it anew, and the system may say that none comes. The system's word stands."""
    reply, standing = given.reply, channel.reply
    assert standing is not None
    _check_participant(channel, reply)
    if not standing.by:
        if not reply.by:
            return channel
        raise ReplyRefused(over(channel))
    if reply.by and reply.epoch < standing.epoch:
        raise ReplyRefused(
            f"a later owner of {reply.by} has answered on channel {channel.id}: this answer "
            "comes from a turn that lost its seat"
        )
    return replace(channel, reply=reply)


def _close(channel: Channel, given: Told) -> Channel:
    """What was said has been handed on; who said it, and in which turn, stays."""
    assert channel.reply is not None
    reason = "" if channel.reply.by else channel.reply.text
    reply = replace(channel.reply, text="")
    return _closed(replace(channel, reply=reply, reason=reason), given.at)


def _withdraw(channel: Channel, given: Withdrawn) -> Channel:
    return _closed(replace(channel, reason=given.reason), given.at)


def _closed(channel: Channel, at: datetime) -> Channel:
    """Two nodes' clocks may disagree: a channel never ends before it began."""
    closed_at = max(at, channel.opened_at)
    return replace(channel, state="closed", brief="", closed_at=closed_at)


def _refuse(channel: Channel, given: Owed) -> Channel:
    if not given.reply.by:
        return channel
    _check_participant(channel, given.reply)
    raise ReplyRefused(over(channel))


def _same(channel: Channel, _: Input) -> Channel:
    return channel


def _announced(channel: Channel, _: Announced) -> Channel:
    return channel if channel.announced else replace(channel, announced=True)


TRANSITIONS: Final[Mapping[tuple[State, type[Input]], Callable[[Channel, Any], Channel]]] = {
    ("open", Owed): _owe,
    ("open", Withdrawn): _withdraw,
    ("answered", Owed): _owe_again,
    ("answered", Told): _close,
    ("closed", Owed): _refuse,
    ("closed", Told): _same,
    ("closed", Withdrawn): _same,
    ("closed", Announced): _announced,
}
"""What may happen in which state, and what makes of it what."""


def _check_participant(channel: Channel, reply: Reply) -> None:
    if reply.by and reply.by != channel.target:
        raise ReplyRefused(
            f"channel {channel.id} is between {channel.asker} and {channel.target}: "
            f"{reply.by} was not asked, and cannot answer there"
        )


def over(channel: Channel) -> str:
    """Why nobody waits for an answer any more."""
    word = channel.reply.text if channel.given_up and channel.reply is not None else ""
    why = channel.reason or word or "it has had its answer"
    return f"channel {channel.id} of {channel.asker} is closed ({why}): nobody waits for an answer"
