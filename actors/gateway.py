"""The broker gateway: every fetch and settlement of this node goes through it.

It owns what is in flight. A fetch that is outstanding when its box lets go is owned to its
end, and what it brings late is handed back; a seat that starts again finds nothing of its
former life in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

import structlog
from msgspec import Struct, field

from actors.delivery import Delivery, Mailbox
from actors.machines.budget import give_back
from actors.messages import (
    AttachBox,
    BoxAttached,
    BoxReleased,
    BoxSettled,
    FetchBox,
    Fetched,
    FetchFailed,
    InFlight,
    ListInFlight,
    RecallBox,
    ReleaseBox,
    SettleBox,
)
from actors.ports import Attachment, Broker, BrokerError
from actors.system import Actor, Address, EffectEnded, handles

RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 5.0
"""A settlement that the broker did not take is tried again until it does."""

log = structlog.get_logger(__name__)


class Hold(Enum):
    """How far an attachment has come."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    RELEASING = "releasing"
    RELEASED = "released"


class _Attached(Struct):
    """One attachment: whose it is, and what it has in flight."""

    ticket: int
    wanted: AttachBox
    owner: Address
    hold: Hold = Hold.ATTACHING
    attachment: Attachment | None = None
    in_flight: dict[str, tuple[Delivery, float]] = field(default_factory=dict)

    @property
    def box(self) -> str:
        return self.wanted.box

    @property
    def mailbox(self) -> Mailbox:
        return self.wanted.mailbox


class _Again(Struct, frozen=True):
    """Try the attachment of this ticket again."""

    ticket: int


class _SettleAgain(Struct, frozen=True):
    """Try this settlement once more."""

    wanted: SettleBox
    tries: int


Kind: TypeAlias = Literal["attach", "fetch", "recall", "settle", "release"]


class _Work(Struct, frozen=True):
    """The tag of an effect: what it was for. Numbered, since tags must differ."""

    number: int
    kind: Kind
    ticket: int
    settling: SettleBox | None
    tries: int


class Gateway(Actor):
    """One a node. Attachments are named by tickets; a ticket is never given out twice."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._attached: dict[int, _Attached] = {}
        self._ticket = 0
        self._number = 0

    # -- attach and release -----------------------------------------------------------

    @handles(AttachBox)
    def on_attach(self, wanted: AttachBox, sender: Address) -> None:
        self._ticket += 1
        entry = _Attached(ticket=self._ticket, wanted=wanted, owner=sender)
        stale = [a for a in self._attached.values() if a.mailbox == wanted.mailbox]
        self._attached[entry.ticket] = entry
        self._work("attach", entry, self._attach(entry, self._superseded(stale)))

    def _superseded(self, stale: list[_Attached]) -> list[_Attached]:
        """Attachments whose owner started again: nobody else will settle what they hold."""
        for entry in stale:
            self._attached.pop(entry.ticket)
        return stale

    async def _attach(self, entry: _Attached, stale: list[_Attached]) -> Attachment:
        for former in stale:
            reason = "the seat started again before this was settled"
            back = [(d, give_back(d, reason)) for d, _ in former.in_flight.values()]
            former.in_flight.clear()
            await self._broker.settle(back)
            if former.attachment is not None:
                await self._broker.release(former.attachment)
        if entry.wanted.reclaim and (count := await self._broker.reclaim(entry.mailbox)):
            log.info("mail_reclaimed", mailbox=str(entry.mailbox), messages=count)
        return await self._broker.attach(entry.mailbox, entry.wanted.epoch)

    @handles(_Again)
    def on_again(self, again: _Again, sender: Address) -> None:
        if entry := self._attached.get(again.ticket):
            self._work("attach", entry, self._attach(entry, []))

    @handles(ReleaseBox)
    def on_release(self, wanted: ReleaseBox, sender: Address) -> None:
        entry = self._attached.get(wanted.ticket)
        if entry is not None and entry.hold is Hold.ATTACHED and entry.attachment is not None:
            entry.hold = Hold.RELEASING
            self._work("release", entry, self._broker.release(entry.attachment))

    # -- fetch and settle -------------------------------------------------------------

    @handles(FetchBox)
    def on_fetch(self, wanted: FetchBox, sender: Address) -> None:
        if (entry := self._held(wanted.ticket)) and entry.attachment is not None:
            fetch = self._broker.fetch(entry.attachment, wanted.most, wanted.wait_s)
            self._work("fetch", entry, fetch)

    @handles(RecallBox)
    def on_recall(self, wanted: RecallBox, sender: Address) -> None:
        if (entry := self._held(wanted.ticket)) and entry.attachment is not None:
            self._work("recall", entry, self._broker.recall(entry.attachment))

    def _held(self, ticket: int) -> _Attached | None:
        """The attachment of this ticket, while it may still be pulled from."""
        entry = self._attached.get(ticket)
        return entry if entry is not None and entry.hold is Hold.ATTACHED else None

    @handles(SettleBox)
    def on_settle(self, wanted: SettleBox, sender: Address) -> None:
        if entry := self._attached.get(wanted.ticket):
            self._settle(entry, wanted)

    def _settle(self, entry: _Attached, wanted: SettleBox, tries: int = 0) -> None:
        settle = self._broker.settle(wanted.verdicts)
        self._work("settle", entry, settle, settling=wanted, tries=tries)

    @handles(_SettleAgain)
    def on_settle_again(self, again: _SettleAgain, sender: Address) -> None:
        if entry := self._attached.get(again.wanted.ticket):
            self._settle(entry, again.wanted, again.tries)

    # -- ends -------------------------------------------------------------------------

    def _work(
        self,
        kind: Kind,
        entry: _Attached,
        coroutine: Coroutine[Any, Any, object],
        settling: SettleBox | None = None,
        tries: int = 0,
    ) -> None:
        self._number += 1
        tag = _Work(self._number, kind, entry.ticket, settling, tries)
        self.effect(coroutine, tag=tag)

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        work: _Work = ended.tag  # type: ignore[assignment]
        entry = self._attached.get(work.ticket)
        if ended.error is not None and not isinstance(ended.error, BrokerError):
            log.error("broker_call_raised", call=work.kind, error=type(ended.error).__name__)
        if entry is not None:
            _ENDS[work.kind](self, entry, work, ended)

    def _on_attached(self, entry: _Attached, _: _Work, ended: EffectEnded) -> None:
        if ended.error is not None:
            log.warning("attach_failed", mailbox=str(entry.mailbox), error=str(ended.error))
            self.timer(f"attach {entry.ticket}", RETRY_S, _Again(entry.ticket))
            return
        entry.attachment = ended.value  # type: ignore[assignment]
        entry.hold = Hold.ATTACHED
        self.tell(entry.owner, BoxAttached(entry.box, entry.ticket))

    def _on_fetched(self, entry: _Attached, _: _Work, ended: EffectEnded) -> None:
        if ended.error is not None:
            self.tell(entry.owner, FetchFailed(entry.box, entry.ticket, str(ended.error)))
            return
        deliveries: Sequence[Delivery] = ended.value  # type: ignore[assignment]
        at = self.clock.monotonic()
        for delivery in deliveries:
            entry.in_flight[delivery.receipt] = (delivery, at)
        self.tell(entry.owner, Fetched(entry.box, entry.ticket, deliveries))

    def _on_settled(self, entry: _Attached, work: _Work, ended: EffectEnded) -> None:
        assert work.settling is not None
        if ended.error is not None:
            after_s = min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(work.tries, 8))
            log.warning("settlement_retried", mailbox=str(entry.mailbox), error=str(ended.error))
            again = _SettleAgain(work.settling, work.tries + 1)
            self.timer(f"settle {work.number}", after_s, again)
            return
        for delivery, _verdict in work.settling.verdicts:
            entry.in_flight.pop(delivery.receipt, None)
        if not work.settling.quiet:
            self.tell(entry.owner, BoxSettled(entry.box, entry.ticket))
        self._forget(entry)

    def _on_recalled(self, entry: _Attached, _: _Work, ended: EffectEnded) -> None:
        """The fetch that it ended answers for itself."""

    def _on_released(self, entry: _Attached, _: _Work, ended: EffectEnded) -> None:
        entry.hold = Hold.RELEASED
        self.tell(entry.owner, BoxReleased(entry.box, entry.ticket))
        self._forget(entry)

    def _forget(self, entry: _Attached) -> None:
        """A released attachment is kept until its running handler's mail is settled."""
        if entry.hold is Hold.RELEASED and not entry.in_flight:
            self._attached.pop(entry.ticket, None)

    @handles(ListInFlight)
    def on_list(self, _: ListInFlight, sender: Address) -> None:
        now = self.clock.monotonic()
        lines = [
            InFlight(delivery.mailbox, delivery.position, delivery.count, now - at)
            for entry in self._attached.values()
            for delivery, at in entry.in_flight.values()
        ]
        self.tell(sender, tuple(lines))


_ENDS: Final[dict[Kind, Callable[[Gateway, _Attached, _Work, EffectEnded], None]]] = {
    "attach": Gateway._on_attached,
    "fetch": Gateway._on_fetched,
    "recall": Gateway._on_recalled,
    "settle": Gateway._on_settled,
    "release": Gateway._on_released,
}
