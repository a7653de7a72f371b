"""The broker gateway: every fetch and settlement of this node goes through it.

It owns what is in flight. A fetch that is outstanding when its box lets go is owned to its
end; a seat that starts again finds nothing of its former life in the way; a settlement that
the broker did not take is tried again until it does.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Literal, TypeAlias

import structlog
from msgspec import Struct

from actors.delivery import Delivery, Mailbox
from actors.machines.budget import give_back
from actors.messages import (
    AttachBox,
    AttachFailed,
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

RECALL_AGAIN_S: Final = 0.5
"""A recall that overtook its fetch ends nothing: it is said again until the fetch has ended."""

STARTED_AGAIN: Final = "the consumer started again before this was settled"

log = structlog.get_logger(__name__)


class _Attached(Struct):
    """One attachment, from the wish to the release; `fetching` while a fetch is outstanding."""

    ticket: int
    owner: Address
    wanted: AttachBox
    attachment: Attachment | None = None
    fetching: bool = False
    releasing: bool = False


class _Held(Struct, frozen=True):
    """A delivery that was handed to `owner` in its `life` and is not settled."""

    owner: Address
    life: int
    delivery: Delivery
    since: float


Kind: TypeAlias = Literal["attach", "fetch", "recall", "settle", "release"]


class _Work(Struct, frozen=True):
    """The tag of an effect: what it is for. Numbered, since tags must differ."""

    number: int
    kind: Kind
    about: _Attached | _Settling


class _Settling(Struct, frozen=True):
    owner: Address
    wanted: SettleBox
    tries: int = 0


class _AttachAgain(Struct, frozen=True):
    ticket: int


class _RecallAgain(Struct, frozen=True):
    ticket: int


class Gateway(Actor):
    """One a node. Attachments are named by tickets; a ticket is never given out twice."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._attached: dict[int, _Attached] = {}
        self._in_flight: dict[tuple[Mailbox, int], _Held] = {}
        self._ticket = 0
        self._number = 0

    # -- attach and release -----------------------------------------------------------

    @handles(AttachBox)
    def on_attach(self, wanted: AttachBox, sender: Address) -> None:
        self._ticket += 1
        entry = _Attached(self._ticket, sender, wanted)
        former = self._former(entry)
        self._attached[entry.ticket] = entry
        self._work("attach", entry, self._attach(entry, *former))

    def _former(self, entry: _Attached) -> tuple[list[_Attached], list[Delivery]]:
        """What an earlier life of the same owner left: nobody else will let go of it."""
        wanted = entry.wanted
        stale = [
            a
            for a in self._attached.values()
            if a.owner == entry.owner and a.wanted.box == wanted.box and a.wanted.life < wanted.life
        ]
        held = [
            h
            for h in self._in_flight.values()
            if h.owner == entry.owner
            and h.delivery.mailbox == wanted.mailbox
            and h.life < wanted.life
        ]
        for a in stale:
            del self._attached[a.ticket]
        for h in held:
            del self._in_flight[h.delivery.mailbox, h.delivery.position]
        return stale, [h.delivery for h in held]

    async def _attach(
        self, entry: _Attached, stale: Sequence[_Attached], held: Sequence[Delivery]
    ) -> Attachment:
        for former in stale:
            if former.attachment is not None:
                await self._broker.release(former.attachment)
        await self._broker.settle([(d, give_back(d, STARTED_AGAIN)) for d in held])
        wanted = entry.wanted
        if wanted.reclaim and (count := await self._broker.reclaim(wanted.mailbox)):
            log.info("mail_reclaimed", mailbox=str(wanted.mailbox), messages=count)
        return await self._broker.attach(wanted.mailbox, wanted.epoch)

    @handles(_AttachAgain)
    def on_attach_again(self, again: _AttachAgain, sender: Address) -> None:
        if entry := self._attached.get(again.ticket):
            self._work("attach", entry, self._attach(entry, (), ()))

    def _on_attached(self, entry: _Attached, ended: EffectEnded) -> None:
        if entry.ticket not in self._attached:  # its owner started again meanwhile
            if ended.error is None:
                late: Attachment = ended.value  # type: ignore[assignment]
                self._work("release", entry, self._broker.release(late))
        elif ended.error is None:
            entry.attachment = ended.value  # type: ignore[assignment]
            self.tell(entry.owner, BoxAttached(entry.wanted.box, entry.ticket))
        elif entry.wanted.patient:
            mailbox = str(entry.wanted.mailbox)
            log.warning("attach_retried", mailbox=mailbox, error=str(ended.error))
            self.timer(f"attach {entry.ticket}", RETRY_S, _AttachAgain(entry.ticket))
        else:
            del self._attached[entry.ticket]
            self.tell(entry.owner, AttachFailed(entry.wanted.box, ended.error))

    @handles(ReleaseBox)
    def on_release(self, wanted: ReleaseBox, sender: Address) -> None:
        if entry := self._live(wanted.ticket):
            entry.releasing = True
            assert entry.attachment is not None
            self._work("release", entry, self._broker.release(entry.attachment))

    def _on_released(self, entry: _Attached, ended: EffectEnded) -> None:
        if self._attached.pop(entry.ticket, None):
            self.tell(entry.owner, BoxReleased(entry.wanted.box, entry.ticket))

    def _live(self, ticket: int) -> _Attached | None:
        """The attachment of this ticket, while it may still be pulled from."""
        entry = self._attached.get(ticket)
        live = entry is not None and entry.attachment is not None and not entry.releasing
        return entry if live else None

    # -- fetch ------------------------------------------------------------------------

    @handles(FetchBox)
    def on_fetch(self, wanted: FetchBox, sender: Address) -> None:
        if entry := self._live(wanted.ticket):
            assert entry.attachment is not None
            entry.fetching = True
            fetch = self._broker.fetch(entry.attachment, wanted.most, wanted.wait_s)
            self._work("fetch", entry, fetch)

    def _on_fetched(self, entry: _Attached, ended: EffectEnded) -> None:
        entry.fetching = False
        self.cancel_timer(f"recall {entry.ticket}")
        box = entry.wanted.box
        if ended.error is not None:
            self.tell(entry.owner, FetchFailed(box, entry.ticket, str(ended.error)))
            return
        deliveries: Sequence[Delivery] = ended.value  # type: ignore[assignment]
        if entry.ticket not in self._attached:
            self._return(entry, deliveries)
            return
        since = self.clock.monotonic()
        for d in deliveries:
            held = _Held(entry.owner, entry.wanted.life, d, since)
            self._in_flight[d.mailbox, d.position] = held
        self.tell(entry.owner, Fetched(box, entry.ticket, deliveries))

    def _return(self, entry: _Attached, deliveries: Sequence[Delivery]) -> None:
        """They came for a life that is over."""
        if deliveries:
            back = [(d, give_back(d, STARTED_AGAIN)) for d in deliveries]
            wanted = SettleBox(entry.wanted.box, entry.wanted.life, back, quiet=True)
            self._settle(_Settling(entry.owner, wanted))

    @handles(RecallBox)
    def on_recall(self, wanted: RecallBox, sender: Address) -> None:
        self._recall(wanted.ticket)

    @handles(_RecallAgain)
    def on_recall_again(self, again: _RecallAgain, sender: Address) -> None:
        self._recall(again.ticket)

    def _recall(self, ticket: int) -> None:
        entry = self._live(ticket)
        if entry is not None and entry.attachment is not None and entry.fetching:
            self._work("recall", entry, self._broker.recall(entry.attachment))
            self.timer(f"recall {ticket}", RECALL_AGAIN_S, _RecallAgain(ticket))

    def _on_recalled(self, entry: _Attached, ended: EffectEnded) -> None:
        """The fetch that it ended answers for itself."""

    # -- settle -----------------------------------------------------------------------

    @handles(SettleBox)
    def on_settle(self, wanted: SettleBox, sender: Address) -> None:
        self._settle(_Settling(sender, wanted))

    @handles(_Settling)
    def on_settle_again(self, settling: _Settling, sender: Address) -> None:
        self._settle(settling)

    def _settle(self, settling: _Settling) -> None:
        self._work("settle", settling, self._broker.settle(settling.wanted.verdicts))

    def _on_settled(self, settling: _Settling, ended: EffectEnded) -> None:
        wanted = settling.wanted
        if ended.error is not None:
            after_s = min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(settling.tries, 8))
            log.warning("settlement_retried", box=wanted.box, error=str(ended.error))
            again = _Settling(settling.owner, wanted, settling.tries + 1)
            self.timer(f"settle {id(wanted)}", after_s, again)
            return
        for delivery, _verdict in wanted.verdicts:
            self._in_flight.pop((delivery.mailbox, delivery.position), None)
        if not wanted.quiet:
            self.tell(settling.owner, BoxSettled(wanted.box, wanted.life))

    # -- effects ----------------------------------------------------------------------

    def _work(
        self, kind: Kind, about: _Attached | _Settling, coroutine: Coroutine[Any, Any, object]
    ) -> None:
        self._number += 1
        self.effect(coroutine, tag=_Work(self._number, kind, about))

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        work: _Work = ended.tag  # type: ignore[assignment]
        if ended.error is not None and not isinstance(ended.error, BrokerError):
            log.error("broker_call_raised", call=work.kind, error=repr(ended.error)[:200])
        _ENDS[work.kind](self, work.about, ended)

    @handles(ListInFlight, urgent=True)
    def on_list(self, _: ListInFlight, sender: Address) -> None:
        now = self.clock.monotonic()
        lines = [
            InFlight(mailbox, position, held.delivery.count, now - held.since)
            for (mailbox, position), held in self._in_flight.items()
        ]
        self.tell(sender, tuple(lines))


_ENDS: Final[dict[Kind, Callable[[Gateway, Any, EffectEnded], None]]] = {
    "attach": Gateway._on_attached,
    "fetch": Gateway._on_fetched,
    "recall": Gateway._on_recalled,
    "settle": Gateway._on_settled,
    "release": Gateway._on_released,
}
