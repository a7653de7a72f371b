"""A store that loses answers, processes that pause, and peers that end who is silent.

True time runs in one place; each process and each peer has a clock of its own, set anyhow and
running a little fast or slow. Nobody here compares two of them.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from actors.machines import lease as machine
from actors.machines.timing import Timing, patience_s
from actors.tenure import Lease

ROW = "node:n"
TIMING = Timing()


class Clock(Struct, frozen=True):
    offset: float
    rate: float

    def at(self, true: float) -> float:
        return self.offset + self.rate * true

    def when(self, own: float) -> float:
        return (own - self.offset) / self.rate


class Call:
    """One `Look` or `Write` on its way: it may be applied, and its answer may come, or not."""

    def __init__(self, lease: Lease | None, sent: float) -> None:
        self.lease = lease
        self.sent = sent
        self.answer: machine.Input | None = None
        self.awaited = True


class Store:
    """One row, its history, and S1 and S2 at each write."""

    def __init__(self) -> None:
        self.true = 0.0
        self.row: Lease | None = None
        self.owners: dict[int, str] = {}
        self.processes: list[Process] = []

    def write(self, lease: Lease) -> Lease | None:
        """The row as written; None where somebody's write came first."""
        row = self.row
        if lease.revision != (row.revision if row else 0):
            return None
        last = row.epoch if row else 0
        granted = lease.epoch != last
        assert lease.epoch >= last, "S1: an epoch never falls"
        if granted:
            assert lease.epoch > last and lease.epoch not in self.owners, "S1: nor comes twice"
            assert not lease.released
            self.owners[lease.epoch] = lease.owner
        assert self.owners[lease.epoch] == lease.owner, "S1: it belongs to one owner"
        if row and row.released:
            assert granted, "an ended session is never renewed"
        self.row = replace(lease, revision=lease.revision + 1)
        return self.row


class Process:
    """Steps one machine as a shell would, and asserts what has to hold at each step."""

    def __init__(self, store: Store, owner: str, clock: Clock, seal: str = "") -> None:
        self.store = store
        self.clock = clock
        self.owner = owner
        self.machine = machine.SessionMachine("n", owner, TIMING, seal=seal)
        self.calls: list[Call] = []
        self.wake = float("inf")
        self.paused = False
        self.dead = False
        self.begun = False
        self.stands = False
        self.left = 0
        self.heard: list[machine.Effect] = []
        self.sent = float("-inf")
        store.processes.append(self)

    @property
    def now(self) -> float:
        return self.clock.at(self.store.true)

    @property
    def awaited(self) -> Call | None:
        return next((call for call in self.calls if call.awaited), None)

    @property
    def believes(self) -> bool:
        return not self.dead and self.machine.valid_until > self.now

    def step(self, given: machine.Input) -> None:
        valid_until = self.machine.valid_until
        if isinstance(given, machine.Begin):
            self.begun = True
        for effect in self.machine.step(given, self.now):
            self._carry_out(effect)
        if isinstance(given, machine.Written) and not given.lease.released:
            self.sent = given.sent
        if not isinstance(given, machine.Written):
            assert self.machine.valid_until <= valid_until, "only an applied write extends"
        assert self.machine.valid_until <= self.sent + TIMING.valid_s, "it counts from the sending"
        assert self.machine.start_until <= self.machine.valid_until
        if self.machine.state is machine.State.LEAVING:
            self.stands = False  # given up: it neither stands nor does it end unasked
        assert self.stands == (self.machine.state is machine.State.HELD), self.heard
        self.lives()

    def lives(self) -> None:
        """It waits for an answer or a time, or has left."""
        if self.begun and self.machine.state is not machine.State.LEFT:
            assert self.awaited or self.wake < float("inf"), "a dead machine"

    def _carry_out(self, effect: machine.Effect) -> None:
        match effect:
            case machine.Look():
                self._call(None)
            case machine.Write(lease=lease):
                assert not self.left
                self._call(lease)
            case machine.Wake(at=at):
                self.wake = at
            case _:
                self.heard.append(effect)
                self._note(effect)

    def _call(self, lease: Lease | None) -> None:
        assert self.awaited is None, "two requests at a time"
        self.calls.append(Call(lease, self.now))

    def _note(self, effect: machine.Effect) -> None:
        match effect:
            case machine.Began(epoch=epoch, sent=sent):
                assert not self.stands and epoch == self.machine.epoch
                assert self.now < sent + TIMING.valid_s, "a late reply is no session"
                self.stands = True
            case machine.Renewed() | machine.Doubted():
                assert self.stands
            case machine.Ended():
                assert self.stands, "nothing ends that did not begin"
                self.stands = False
            case machine.Left():
                self.left += 1
                assert self.left == 1
                self.stands = False

    # -- the world's side of a call -------------------------------------------------------

    def apply(self, call: Call) -> None:
        """The store does what is asked; late, perhaps, when nobody waits for it any more."""
        if call.lease is None:
            call.answer = machine.Looked(self.store.row)
        else:
            written = self.store.write(call.lease)
            call.answer = machine.Written(written, call.sent) if written else machine.Refused()
        if not call.awaited:
            self.calls.remove(call)

    def answer(self, call: Call) -> None:
        assert call.answer is not None
        self.calls.remove(call)
        self.step(call.answer)

    def lose(self, call: Call) -> None:
        """Nobody tells: it was applied, or will be, or never."""
        call.awaited = False
        if call.answer is not None:
            self.calls.remove(call)
        self.step(machine.Unanswered())


class Peer:
    """Hears the row, sooner or later, and ends a session that was silent for a TTL."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.seen: tuple[Lease, float] | None = None

    def hear(self) -> None:
        row = self.store.row
        if row is not None and (self.seen is None or self.seen[0].revision != row.revision):
            self.seen = (row, self.clock.at(self.store.true))

    def end(self) -> bool:
        if self.seen is None or self.seen[0].released:
            return False
        row, heard = self.seen
        if self.clock.at(self.store.true) - heard < patience_s(row.about, TIMING.ttl_s):
            return False
        return self.store.write(replace(row, released=True)) is not None
