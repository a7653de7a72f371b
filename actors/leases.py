"""The lease supervisor: keeps this node's session, and says how it stands.

What the session allows is written into `Session`, which everybody who works under it reads: the
gates do not wait for a message that may stand in a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog
from msgspec import Struct

from actors.fleet import LEAVING
from actors.machines import lease as machine
from actors.machines.timing import Timing
from actors.ports import BrokerError
from actors.system import Actor, Address, EffectEnded, handles
from actors.tenure import NODE, Lease, LeaseStore, Lost, Session

log = structlog.get_logger(__name__)

WAKE: Final = "wake"


# -- what it is told, and what it says --------------------------------------------------


class BeginSession(Struct, frozen=True):
    """Have a session, and keep it; whoever asks is told how it stands from now on."""

    listeners: tuple[Address, ...]


class SayAbout(Struct, frozen=True):
    """Write this of the node into its row: its roles, its labels, whether it is leaving."""

    about: Mapping[str, str]


class LeaveSession(Struct, frozen=True):
    """Nothing is held any more; answered by `SessionLeft`."""


class SessionLeft(Struct, frozen=True):
    """It is over; whether anybody could be told or not."""


class SessionBegan(Struct, frozen=True):
    epoch: int


class SessionRenewed(Struct, frozen=True):
    """`again`: it had been doubted."""

    again: bool


class SessionDoubted(Struct, frozen=True):
    """Not confirmed lately: start nothing, keep everything."""


class SessionEnded(Struct, frozen=True):
    """Whatever was held under it is gone."""

    reason: str


class SessionTaken(Struct, frozen=True):
    """A process that lives has this node's id."""

    lease: Lease


class _Wake(Struct, frozen=True):
    pass


class _Wrote(Struct, frozen=True):
    """The tag of a write."""

    sent: float


class LeaseSupervisor(Actor):
    """Steps the session's machine, and carries out what it asks for."""

    def __init__(
        self,
        store: LeaseStore,
        node: str,
        owner: str,
        timing: Timing,
        session: Session,
        about: Mapping[str, str],
        seal: str = "",
    ) -> None:
        super().__init__()
        self._store = store
        self._machine = machine.SessionMachine(node, owner, timing, seal=seal)
        self._resource = NODE + node
        self._node = node
        self._session = session
        self._about = dict(about)
        self._listeners: tuple[Address, ...] = ()
        self._leaver: Address | None = None

    @handles(BeginSession)
    def on_begin(self, wanted: BeginSession, sender: Address) -> None:
        self._listeners = wanted.listeners
        self._step(machine.Begin(self._about))

    @handles(SayAbout)
    def on_about(self, said: SayAbout, sender: Address) -> None:
        self._about = dict(said.about)
        self._session.leaving = LEAVING in self._about
        self._step(machine.About(self._about))

    @handles(LeaveSession)
    def on_leave(self, _: LeaveSession, sender: Address) -> None:
        self._leaver = sender
        if self._machine.state is machine.State.LEFT:
            self._left()
        else:
            self._step(machine.Leave())

    @handles(_Wake, urgent=True)
    def on_wake(self, _: _Wake, sender: Address) -> None:
        self._step(machine.Woken())

    @handles(EffectEnded, urgent=True)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        """An answer of the store. What it raised beside its own errors is a fault of ours, and
        says as little about the row as silence does."""
        error, value = ended.error, ended.value
        if isinstance(error, Lost):
            self._step(machine.Refused())
        elif error is not None:
            known = isinstance(error, BrokerError)
            log.warning("session_unanswered", node=self._node, error=str(error), known=known)
            self._step(machine.Unanswered())
        elif isinstance(ended.tag, _Wrote):
            assert isinstance(value, Lease)
            self._step(machine.Written(value, ended.tag.sent))
        else:
            assert value is None or isinstance(value, Lease)
            self._step(machine.Looked(value))

    # -- the machine --------------------------------------------------------------------

    def _step(self, given: machine.Input) -> None:
        now = self.clock.monotonic()
        effects = self._machine.step(given, now)
        # Before anything else is done: a gate that is asked meanwhile must not err.
        self._session.epoch = self._machine.epoch
        self._session.valid_until = self._machine.valid_until
        self._session.start_until = self._machine.start_until
        for effect in effects:
            self._carry_out(effect, now)

    def _carry_out(self, effect: machine.Effect, now: float) -> None:
        match effect:
            case machine.Look():
                self.effect(self._store.read(self._resource), tag=None)
            case machine.Write(lease=lease):
                self.effect(self._store.write(lease), tag=_Wrote(now))
            case machine.Wake(at=at):
                if at == float("inf"):
                    self.cancel_timer(WAKE)
                else:
                    self.timer(WAKE, max(0.0, at - now), _Wake())
            case machine.Began(epoch=epoch):
                log.info("session_began", node=self._node, epoch=epoch)
                self._say(SessionBegan(epoch))
            case machine.Renewed(again=again):
                self._say(SessionRenewed(again))
            case machine.Doubted():
                log.warning("session_doubted", node=self._node)
                self._say(SessionDoubted())
            case machine.Ended(reason=reason):
                log.error("session_ended", node=self._node, reason=reason)
                self._say(SessionEnded(reason))
            case machine.Taken(lease=lease):
                log.error("session_taken", node=self._node, owner=lease.owner)
                self._say(SessionTaken(lease))
            case machine.Left():
                self._left()

    def _say(self, what: object) -> None:
        for listener in self._listeners:
            self.tell(listener, what)

    def _left(self) -> None:
        if self._leaver is not None:
            self.tell(self._leaver, SessionLeft())
            self._leaver = None
