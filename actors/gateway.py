"""The broker gateway: every fetch and settlement of this node goes through it.

It owns what is in flight: a fetch that is outstanding when its box lets go is owned to its
end, a settlement that the broker did not take is made again until it does, and when a consumer
begins a new life, what the former one held is given back before the new one attaches.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Struct

from actors.custody import SWEEP_S, SWEEP_SPREAD, Custody, Work
from actors.delivery import Delivery, Done, Retry
from actors.failpoints import reached
from actors.in_flight import Clearing, Entry, Held, Settling, in_force, is_former, key_of
from actors.machines.budget import give_back
from actors.messages import (
    AttachBox,
    BoxAttached,
    BoxRefused,
    BoxReleased,
    BoxSettled,
    ClearLife,
    FetchBox,
    Fetched,
    FetchFailed,
    Flush,
    Flushed,
    Forsake,
    Forsaken,
    LifeCleared,
    RecallBox,
    ReleaseBox,
    SettleBox,
)
from actors.patience import until_taken
from actors.ports import Attachment, Broker, BrokerError
from actors.system import Address, EffectEnded, handles

RECALL_AGAIN_S: Final = 0.5
"""A recall that overtook its fetch ends nothing: it is said again until the fetch has ended."""

_SAID: Final = (Done, Retry)

STARTED_AGAIN: Final = "the consumer began again before this was settled"

log = structlog.get_logger(__name__)


class _RecallAgain(Struct, frozen=True):
    ticket: int


class Gateway(Custody):
    """One a node. Attachments are named by tickets; a ticket is never given out twice."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._settling: dict[int, Settling] = {}
        self._clearing: dict[Address, Clearing] = {}
        self._flushers: list[Address] = []
        self._ticket = 0
        self.ends |= {
            "attach": self._on_attached,
            "fetch": self._on_fetched,
            "recall": self._on_recalled,
            "settle": self._on_settled,
            "release": self._on_released,
            "abandon": self._on_abandoned,
            "end": self._on_over,
            "clear": self._on_cleared,
        }

    # -- attach -----------------------------------------------------------------------

    @handles(AttachBox)
    def on_attach(self, wanted: AttachBox, sender: Address) -> None:
        self._ticket += 1
        entry = Entry(self._ticket, sender, wanted)
        entry.idle.set()
        self._attached.add(entry)
        attach: Callable[[], Coroutine[Any, Any, Attachment]] = partial(self._attach, wanted)
        ours = in_force(wanted.tenure, self.clock.monotonic)
        call = until_taken(attach, "attach", ours) if wanted.patient else attach()
        self._work("attach", entry, call)

    async def _attach(self, wanted: AttachBox) -> Attachment:
        ours = in_force(wanted.tenure, self.clock.monotonic)
        if wanted.reclaim and ours() and (count := await self._broker.reclaim(wanted.mailbox)):
            log.info("mail_reclaimed", mailbox=str(wanted.mailbox), messages=count)
        reached("before_attach")
        return await self._broker.attach(wanted.mailbox, wanted.epoch)

    def _on_attached(self, entry: Entry, ended: EffectEnded) -> None:
        entry.attachment = ended.value  # type: ignore[assignment]
        entry.answered.set()
        if entry.forsaken:
            self._abandon(entry)
        if entry.over:
            return  # whoever clears that life waits for this
        if entry.attachment is not None:
            wanted = entry.wanted
            self.tell(entry.owner, BoxAttached(wanted.box, wanted.life, entry.ticket))
            self._sweep_in(entry.ticket, SWEEP_S + entry.ticket % SWEEP_SPREAD)
            self._begin_looking(entry)
        else:
            self._drop(entry)
            error = ended.error or BrokerError("the broker will not attach this mailbox")
            wanted = entry.wanted
            self.tell(entry.owner, BoxRefused(wanted.box, wanted.life, error))

    # -- release ----------------------------------------------------------------------

    @handles(ReleaseBox)
    def on_release(self, wanted: ReleaseBox, sender: Address) -> None:
        if entry := self._live(wanted.ticket):
            self._release(entry)

    def _release(self, entry: Entry) -> None:
        entry.releasing = True
        assert entry.attachment is not None
        release = partial(self._broker.release, entry.attachment)
        self._work("release", entry, until_taken(release, "release"))

    def _on_released(self, entry: Entry, ended: EffectEnded) -> None:
        self._drop(entry)
        self._strays.forget(entry.wanted.mailbox)
        if not entry.over:
            self.tell(entry.owner, BoxReleased(entry.wanted.box, entry.ticket))

    # -- fenced -----------------------------------------------------------------------

    @handles(Forsake, urgent=True)
    def on_forsake(self, wanted: Forsake, sender: Address) -> None:
        """Nothing more is told to the broker in that owner's name: what it held is reclaimed by
        whoever has the seat now."""
        owner = wanted.owner
        for entry in self._attached.of(owner):
            entry.over = entry.forsaken = True
            self._drop(entry)
            self._strays.forget(entry.wanted.mailbox)
            if entry.answered.is_set():
                self._abandon(entry)
        for settling in [s for s in self._settling.values() if s.owner == owner]:
            self.cancel(Work("settle", settling))
        for held in [h for h in self._in_flight.values() if h.owner == owner]:
            del self._in_flight[key_of(held.delivery)]
        self.tell(sender, Forsaken(owner))

    def _abandon(self, entry: Entry) -> None:
        if entry.attachment is not None and not entry.releasing:
            entry.releasing = True
            abandon = partial(self._broker.abandon, entry.attachment)
            self._work("abandon", entry, until_taken(abandon, "abandon"))

    def _on_abandoned(self, entry: Entry, ended: EffectEnded) -> None:
        """Nobody waits for it."""

    # -- a new life -------------------------------------------------------------------

    @handles(ClearLife)
    def on_clear(self, wanted: ClearLife, sender: Address) -> None:
        owner = wanted.owner or sender
        stale = [a for a in self._attached.of(owner) if is_former(a, wanted.life)]
        for entry in stale:
            entry.over = True
        settling = tuple(s for s in self._settling.values() if s.owner == owner)
        clearing = Clearing(
            asker=sender,
            owner=owner,
            life=wanted.life,
            stale=tuple(stale),
            settling=settling,
            earlier=self._clearing.get(owner),
        )
        self._clearing[owner] = clearing
        self._work("end", clearing, self._end(clearing))

    async def _end(self, clearing: Clearing) -> None:
        """Wait for what the broker was asked already: no verdict of a former life, no reclaim
        and no fetch may come to the broker beside what the next life does."""
        if clearing.earlier is not None:
            await clearing.earlier.done.wait()
        for entry in clearing.stale:
            await entry.answered.wait()
            if entry.attachment is not None and not entry.releasing:
                entry.releasing = True
                await until_taken(partial(self._broker.release, entry.attachment), "release")
            await entry.idle.wait()
        for settling in clearing.settling:
            await settling.landed.wait()

    def _on_over(self, clearing: Clearing, ended: EffectEnded) -> None:
        """What is still held has no verdict: it goes back in the order it came."""
        for entry in clearing.stale:
            self._drop(entry)
        owner, life = clearing.owner, clearing.life
        mine = (h for h in self._in_flight.values() if h.owner == owner and h.life < life)
        clearing.held.extend(mine)
        back = [(h.delivery, give_back(h.delivery, STARTED_AGAIN)) for h in clearing.held]
        settle = until_taken(partial(self._broker.settle, back), "settle")
        self._work("clear", clearing, settle)

    def _on_cleared(self, clearing: Clearing, ended: EffectEnded) -> None:
        for held in clearing.held:
            self._in_flight.pop(key_of(held.delivery), None)
        if self._clearing.get(clearing.owner) is clearing:
            del self._clearing[clearing.owner]
        clearing.done.set()
        self.tell(clearing.asker, LifeCleared(clearing.life, clearing.owner))

    # -- fetch ------------------------------------------------------------------------

    @handles(FetchBox)
    def on_fetch(self, wanted: FetchBox, sender: Address) -> None:
        if entry := self._live(wanted.ticket):
            assert entry.attachment is not None
            entry.fetching = True
            entry.idle.clear()
            fetch = self._broker.fetch(entry.attachment, wanted.most, wanted.wait_s)
            self._work("fetch", entry, fetch)

    def _on_fetched(self, entry: Entry, ended: EffectEnded) -> None:
        entry.fetching = False
        entry.idle.set()
        self.cancel_timer(f"recall {entry.ticket}")
        if entry.forsaken:
            return
        wanted = entry.wanted
        if ended.error is not None:
            self.tell(entry.owner, FetchFailed(wanted.box, entry.ticket, str(ended.error)))
            return
        deliveries: Sequence[Delivery] = ended.value  # type: ignore[assignment]
        if deliveries:
            reached("after_fetch")
        since = self.clock.monotonic()
        for delivery in deliveries:
            held = Held(entry.owner, wanted.life, delivery, since)
            self._in_flight[key_of(delivery)] = held
        self.tell(entry.owner, Fetched(wanted.box, entry.ticket, deliveries))

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

    def _on_recalled(self, entry: Entry, ended: EffectEnded) -> None:
        """The fetch that it ended answers for itself."""

    # -- settle -----------------------------------------------------------------------

    @handles(SettleBox)
    def on_settle(self, wanted: SettleBox, sender: Address) -> None:
        self._settle(sender, wanted)

    def _settle(self, owner: Address, wanted: SettleBox) -> None:
        self._strays.note(wanted)
        if not wanted.confirm and self._said(wanted):
            return
        settling = Settling(owner, wanted)
        self._settling[id(settling)] = settling
        ours = in_force(wanted.tenure, self.clock.monotonic)
        settle = until_taken(partial(self._broker.settle, wanted.verdicts), "settle", ours)
        self._work("settle", settling, settle)

    def _said(self, wanted: SettleBox) -> bool:
        """The short way, for what is not confirmed anyway: no task, no wait."""
        tenure = wanted.tenure
        if tenure is not None and not tenure.may_settle(self.clock.monotonic()):
            return False
        for _delivery, verdict in wanted.verdicts:
            if not isinstance(verdict, _SAID):
                return False
        try:
            self._broker.say(wanted.verdicts)
        except BrokerError:
            return False
        except Exception as error:  # a call that is waited for would end no node either
            log.error("broker_call_raised", call="say", error=type(error).__name__)
            return False
        self._landed(wanted)
        return True

    def _landed(self, wanted: SettleBox) -> None:
        for delivery, _verdict in wanted.verdicts:
            self._in_flight.pop(key_of(delivery), None)

    def _on_settled(self, settling: Settling, ended: EffectEnded) -> None:
        wanted = settling.wanted
        del self._settling[id(settling)]
        settling.landed.set()
        self._landed(wanted)
        self._tell_flushers()
        if wanted.confirm:
            self.tell(settling.owner, BoxSettled(wanted.box, wanted.life))

    @handles(Flush)
    def on_flush(self, _: Flush, sender: Address) -> None:
        self._flushers.append(sender)
        self._tell_flushers()

    def _tell_flushers(self) -> None:
        if not self._settling:
            for asker in self._flushers:
                self.tell(asker, Flushed())
            self._flushers.clear()
