"""What the gateway has in its custody, and its care for mail that is in nobody's hands.

Two kinds of such mail lie at the broker and would not move by themselves: what a dead process was
given and nobody hands back, and what the broker itself gave up on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Literal, TypeAlias

import structlog
from msgspec import Struct

from actors.delivery import Dead, Delivery, Mailbox
from actors.in_flight import Attachments, Clearing, Entry, Held, Settling, in_force
from actors.machines.budget import OVERSPENT
from actors.messages import InFlight, ListInFlight, LookAround, SettleBox
from actors.ports import Broker, BrokerError
from actors.strays import LATE_S, LATE_SPREAD_S, Look, Strays
from actors.system import Actor, Address, EffectEnded, handles

SWEEP_S: Final = 5.0
SWEEP_SPREAD: Final = 25
SWEEP_AGAIN_S: Final = 30.0
"""A mailbox is swept once after it was attached, when its first pull has been out for a while;
spread, so that a thousand are not asked in the same second."""

_NO_NEWS: Final = (BrokerError, asyncio.CancelledError)
"""What a call may raise: what the port says, and the end that `Forsake` puts to it."""

LOOKS_AT_ONCE: Final = 4
"""The others wait in order: thousands of mailboxes of a node that died are looked at while their
seats are still being taken over, and that comes first."""

log = structlog.get_logger(__name__)

Kind: TypeAlias = Literal[
    "attach", "fetch", "recall", "settle", "release", "end", "clear", "sweep", "abandon", "look"
]


class Work(Struct, frozen=True):
    """The tag of an effect: what it is for."""

    kind: Kind
    about: Entry | Settling | Clearing


class _Sweep(Struct, frozen=True):
    ticket: int


End: TypeAlias = Callable[[Any, EffectEnded], None]


class Custody(Actor):
    """The tables, and the looks at what is in no table."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._attached = Attachments()
        self._in_flight: dict[tuple[Mailbox, str], Held] = {}
        self._strays = Strays(broker, self.clock, self._in_hand)
        self._to_look: deque[Look] = deque()
        self._looking = 0
        self.ends: dict[Kind, End] = {"sweep": self._on_swept, "look": self._on_looked}

    def _live(self, ticket: int) -> Entry | None:
        """The attachment of this ticket, while it may still be pulled from."""
        entry = self._attached.get(ticket)
        live = entry is not None and entry.attachment is not None and not entry.releasing
        return entry if live else None

    def _drop(self, entry: Entry) -> None:
        """Its ticket names nothing any more, and nothing is looked at for it."""
        self._attached.drop(entry.ticket)
        for name in ("look", "sweep"):
            self.cancel_timer(f"{name} {entry.ticket}")

    def _settle(self, owner: Address, wanted: SettleBox) -> None:
        raise NotImplementedError

    # -- strays -----------------------------------------------------------------------

    @handles(Look)
    def on_look(self, look: Look, sender: Address) -> None:
        entry = self._live(look.ticket)
        if entry is None:
            return
        if self.clock.monotonic() >= look.until:
            self._strays.forget(entry.wanted.mailbox)
            return
        self._to_look.append(look)
        self._look_more()

    def _look_more(self) -> None:
        while self._to_look and self._looking < LOOKS_AT_ONCE:
            look = self._to_look.popleft()
            entry = self._live(look.ticket)
            if entry is None:
                continue
            entry.look = look
            if not entry.fetching:
                self._look_again(entry, self._strays.put_off(look))
                continue
            self._looking += 1
            ours = in_force(entry.wanted.tenure, self.clock.monotonic)
            self._work("look", entry, self._strays.look(entry.wanted.mailbox, look, ours))

    def _on_looked(self, entry: Entry, ended: EffectEnded) -> None:
        """Unanswered, it is looked again as if this look had not been."""
        self._looking -= 1
        self._look_more()
        look = ended.value if isinstance(ended.value, Look) else entry.look
        assert look is not None
        self._look_again(entry, look)

    def _look_again(self, entry: Entry, look: Look) -> None:
        self.timer(f"look {entry.ticket}", self._strays.pause_s(look), look)

    def _begin_looking(self, entry: Entry) -> None:
        """Of a seat that had an owner before us: soon if that one died, else late and once."""
        wanted = entry.wanted
        if wanted.tenure is None or wanted.epoch <= 1:
            return
        if wanted.reclaim:
            for_s = wanted.tenure.watch_s
            look = self._strays.first_look(wanted.mailbox, entry.ticket, for_s)
            self._look_again(entry, look)
        else:
            after_s = LATE_S + entry.ticket % LATE_SPREAD_S
            look = self._strays.late_look(wanted.mailbox, entry.ticket, after_s)
            self.timer(f"look {entry.ticket}", after_s, look)

    @handles(LookAround)
    def on_look_around(self, _: LookAround, sender: Address) -> None:
        for entry in self._attached.all():
            if entry.wanted.tenure is not None and self._live(entry.ticket):
                look = self._strays.first_look(entry.wanted.mailbox, entry.ticket)
                self._look_again(entry, look)

    def _in_hand(self, mailbox: Mailbox) -> list[int]:
        return [h.delivery.position for (m, _), h in self._in_flight.items() if m == mailbox]

    # -- what the broker gave up ------------------------------------------------------

    def _sweep_in(self, ticket: int, after_s: float) -> None:
        self.timer(f"sweep {ticket}", after_s, _Sweep(ticket))

    @handles(_Sweep)
    def on_sweep(self, sweep: _Sweep, sender: Address) -> None:
        """Only while nothing of the mailbox is in flight can the broker tell."""
        entry = self._live(sweep.ticket)
        if entry is None:
            return
        if any(mailbox == entry.wanted.mailbox for mailbox, _ in self._in_flight):
            self._sweep_in(sweep.ticket, SWEEP_AGAIN_S)
        else:
            self._work("sweep", entry, self._broker.sweep(entry.wanted.mailbox))

    def _on_swept(self, entry: Entry, ended: EffectEnded) -> None:
        if ended.error is not None:
            self._sweep_in(entry.ticket, SWEEP_AGAIN_S)
            return
        found: Sequence[Delivery] = ended.value  # type: ignore[assignment]
        if found:
            log.warning("stranded_mail_found", mailbox=str(entry.wanted.mailbox), of=len(found))
            dead = [(delivery, Dead(reason=OVERSPENT)) for delivery in found]
            self._settle(entry.owner, SettleBox(entry.wanted.box, 0, dead, confirm=False))

    # -- effects ----------------------------------------------------------------------

    def _work(
        self,
        kind: Kind,
        about: Entry | Settling | Clearing,
        call: Coroutine[Any, Any, object],
    ) -> None:
        self.effect(call, tag=Work(kind, about))

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        work: Work = ended.tag  # type: ignore[assignment]
        if ended.error is not None and not isinstance(ended.error, _NO_NEWS):
            log.error("broker_call_raised", call=work.kind, error=repr(ended.error)[:200])
        self.ends[work.kind](work.about, ended)

    @handles(ListInFlight, urgent=True)
    def on_list(self, _: ListInFlight, sender: Address) -> None:
        now = self.clock.monotonic()
        lines = [
            InFlight(h.delivery.mailbox, h.delivery.position, h.delivery.count, now - h.since)
            for h in self._in_flight.values()
        ]
        self.tell(sender, tuple(lines))
