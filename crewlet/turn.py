"""The one shape that every handler gets, and the outcomes that it may return.

`crewlet schema turn` prints it as a JSON schema; a command handler reads it as JSON on stdin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from msgspec import Struct, field

from actors.delivery import Ack, Defer, Nak
from crewlet.errors import AskRefused
from crewlet.events.work_items import Basis, WorkItem

__all__ = [
    "Abandon",
    "Ack",
    "Answered",
    "Conversation",
    "Defer",
    "Nak",
    "Outcome",
    "SeatView",
    "Suspend",
    "Turn",
    "TurnEvent",
    "Unavailable",
]


class Answered(Struct, frozen=True, tag="answered"):
    """Done, as Ack is, by a turn that read the thread and answered it as it stands. `shown` are
    the identities (`TurnEvent.message`, `slack:C9:1718.002`) of messages that waited there when
    it read: somebody else's, after the seat's own last one and before the trigger. No turn of
    their own will run for them."""

    answer: str | None = None
    shown: tuple[str, ...] = ()


class Abandon(Struct, frozen=True, tag="abandon"):
    """Given up for good: another try would do harm (something was written outside before it
    broke) or no good (a model declined). The trigger counts as worked, and everybody is told."""

    reason: str


class Suspend(Struct, frozen=True, tag="suspend"):
    """The work goes on elsewhere, under the name `run_id`; the seat's inbox is held until a
    control message ends the run or parks it on a question."""

    run_id: str


class Unavailable(Struct, frozen=True, tag="unavailable"):
    """What the handler needs does not answer, and the mail is not to blame: the seat is held and
    goes on by itself, no sooner than after `retry_after_s` seconds."""

    reason: str
    retry_after_s: float = 5.0


Outcome: TypeAlias = Ack | Answered | Nak | Defer | Abandon | Suspend | Unavailable
"""What a handler makes of a turn."""


class SeatView(Struct, frozen=True, kw_only=True):
    """The seat that the turn is for."""

    handle: str
    name: str
    unit: str = ""
    goal: str = ""


class Conversation(Struct, frozen=True, kw_only=True):
    """Both keys of the conversation; empty where the events belong to none."""

    partition_key: str = ""
    conversation_identity: str = ""


class TurnEvent(Struct, frozen=True, kw_only=True):
    """One constituent. `headroom` counts the further deliveries it has: 0 on the last one,
    None where the broker did not say.

    `event_type` is the source's own (`issues.opened`). `salient_body` is what of the body is new,
    None where all of it is. `message` is the message's identity at its source, empty where it
    has none. `addressed`: it was meant for this seat. `recon`: nobody waits for an answer.
    """

    id: str
    type: str
    timestamp: datetime
    source: str = ""
    event_type: str = ""
    sender: str = ""
    subject: str = ""
    body: str = ""
    salient_body: str | None = None
    message: str = ""
    addressed: bool = True
    recon: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headroom: int | None = None


class Desk(Protocol):
    """What a running turn may ask of the node that runs it. `data` is the folder that the node
    answers on, None where it does not."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def data(self) -> Path | None: ...

    async def ask(self, handle: str, brief: str) -> Ack:
        """See `Turn.ask`."""

    def colleagues(self) -> Sequence[SeatView]:
        """See `Turn.colleagues`. From any thread."""

    def checkpoint(self) -> None:
        """Raise TurnStopped where a person has asked the turn to stop. From any thread."""

    async def stopping(self) -> None:
        """Return once a person has asked the turn to stop."""


class Turn(Struct, frozen=True, kw_only=True, dict=True):
    """What a handler is asked to do, once per conversation and drain.

    `work_item` is what the turn is charged to, None where nothing names one, and
    `work_item_basis` the rule that did.
    `digest` is the text of several events as one piece of work, empty where there is only one.
    `addressed` and `recon` are set where they are of any event. The delegation is that of the event
    that stands deepest in a chain of seats waking one another: 0 where a person or a webhook
    began it.
    `headroom` is the partition's: the smallest of its events'. `attempt` is 1 on a first try.
    `traceparent` is the W3C trace context to work under. `deadline` is when the turn times
    out (UTC), None where it never does; `timeout_s` is the same as a span of time, 0 for none.
    """

    turn_id: str
    seat: SeatView
    company: str
    conversation: Conversation
    events: tuple[TurnEvent, ...]
    work_item: WorkItem | None = None
    work_item_basis: Basis | None = None
    digest: str = ""
    addressed: bool = True
    recon: bool = False
    delegation_depth: int = 0
    delegation_chain: tuple[str, ...] = ()
    parent_turn_id: str = ""
    headroom: int | None = None
    attempt: int = 1
    traceparent: str = ""
    deadline: datetime | None = None
    timeout_s: float = 0.0

    @property
    def text(self) -> str:
        """What a simple handler wants to read: the digest, or the only event's body."""
        return self.digest or "\n\n".join(event.body for event in self.events if event.body)

    def at(self, desk: Desk) -> Self:
        """This turn, run by a node: `desk` is no part of its JSON."""
        self.__dict__["desk"] = desk
        return self

    @property
    def desk(self) -> Desk | None:
        """The node that runs it; None for a turn that is only looked at."""
        return self.__dict__.get("desk")

    def checkpoint(self) -> None:
        """Raise `crewlet.TurnStopped` once a person has asked this turn to stop: call it where
        the work may end, from any thread. Let it out: the turn ends then, and counts as worked."""
        if self.desk is not None:
            self.desk.checkpoint()

    async def stopping(self) -> None:
        """Return once a person has asked this turn to stop: for those who wait meanwhile."""
        if self.desk is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self.desk.stopping()

    def colleagues(self) -> Sequence[SeatView]:
        """Whom this turn may ask: the other agents, those of its own unit first. Nobody where the
        work was handed on too often, or no node runs the turn."""
        return () if self.desk is None else self.desk.colleagues()

    async def ask(self, handle: str, brief: str) -> Ack:
        """Ask a colleague, and end the turn: `return await turn.ask("qa", "Is 1.2 fit to go?")`.

        The answer, or that none comes, wakes this seat with an event of type `a2a_message`. A turn
        that is run again asks the same question once. Raises AskRefused with the reason (a human,
        nobody, oneself, handed on too often); StoreUnavailable or a BrokerError where it is not
        known whether it was asked: let the turn fail, and it is asked again.
        """
        return await self._at_a_desk().ask(handle, brief)

    def ask_blocking(self, handle: str, brief: str) -> Ack:
        """`ask`, for a handler that runs in a thread: `return turn.ask_blocking("qa", "...")`."""
        desk = self._at_a_desk()
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("this would stop the node's loop: write `await turn.ask(...)`")
        return asyncio.run_coroutine_threadsafe(desk.ask(handle, brief), desk.loop).result()

    def _at_a_desk(self) -> Desk:
        if self.desk is None:
            raise AskRefused("no node runs this turn: there is nobody to ask")
        return self.desk
