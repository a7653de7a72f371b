"""Plays the steps of `crewlet.testing.steps` around one session, and looks at all of it.

The clock of the process is the world's. Peers keep to the rule: they write a row that is not
theirs only once its holder was silent for as long as the row asks for.
"""

from __future__ import annotations

from functools import singledispatchmethod

from msgspec.structs import replace

from actors.delivery import Fence
from actors.machines import lease as machine
from actors.machines.timing import Timing, patience_s
from actors.tenure import Lease, Session, Tenure
from crewlet.testing import steps

OWNER = "n1#me"  # no drawn owner is called so
SEAT = Fence("seat:dev", 1, 1)


class Call:
    """A request on its way."""

    def __init__(self, asked: machine.Look | machine.Write, sent: float) -> None:
        self.asked = asked
        self.sent = sent
        self.answer: machine.Input | None = None


class Player:
    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.machine = machine.SessionMachine("n1", OWNER, timing)
        self.now = 1000.0
        self.wake = float("inf")
        self.row: Lease | None = None
        self.written = float("-inf")
        self.call: Call | None = None
        self.lost: list[Lease] = []
        self.epochs: list[int] = []
        self.over: set[int] = set()
        self.confirmed = float("-inf")
        self.left = 0
        self.session = Session()
        self.tenures: list[tuple[Tenure, bool]] = []
        self.step(machine.Begin({}))

    # -- the steps ------------------------------------------------------------------------

    @singledispatchmethod
    def play(self, step: steps.SessionStep) -> None:
        raise TypeError(step)

    @play.register
    def _(self, step: steps.Passed) -> None:
        until = self.now + step.by_s
        while self.wake < until:
            self.now = max(self.now, self.wake + 1e-9)
            self.woken()
        self.now = max(self.now, until)

    @play.register
    def _(self, step: steps.Stopped) -> None:
        self.now += step.by_s
        self.check()  # nobody has told the machine yet
        if self.wake <= self.now:
            self.woken()

    @play.register
    def _(self, step: steps.Applied) -> None:
        """What is on its way, else the oldest of what nobody waits for any more."""
        if self.call is not None:
            self.apply(self.call)
        elif self.lost:
            self.write(self.lost.pop(0))

    @play.register
    def _(self, step: steps.Answered) -> None:
        call = self.call
        self.play(steps.Passed(step.after_s))
        if call is not None and call is self.call:
            self.apply(call)
            assert call.answer is not None
            self.call = None
            self.step(call.answer)

    @play.register
    def _(self, step: steps.Unheard) -> None:
        call, self.call = self.call, None
        if call is None:
            return
        if step.applied:
            self.apply(call)
        elif call.answer is None and isinstance(call.asked, machine.Write):
            self.lost.append(call.asked.lease)
        self.step(machine.Unanswered())

    @play.register
    def _(self, step: steps.Rivalled) -> None:
        row = self.row
        if row is not None and row.owner == OWNER and not row.released:
            if self.now - self.written < patience_s(row.about, self.timing.ttl_s):
                return
            if step.row.released:  # a peer ends it in place
                self.write(replace(row, released=True))
                return
        last = row.epoch if row else 0
        epoch = max(step.row.epoch, last + 1)
        revision = row.revision if row else 0
        self.write(replace(step.row, epoch=epoch, session=epoch, revision=revision))

    # -- the store ------------------------------------------------------------------------

    def apply(self, call: Call) -> None:
        if call.answer is not None:
            return
        if isinstance(call.asked, machine.Look):
            call.answer = machine.Looked(self.row)
        elif (row := self.write(call.asked.lease)) is not None:
            call.answer = machine.Written(row, call.sent)
        else:
            call.answer = machine.Refused()

    def write(self, lease: Lease) -> Lease | None:
        """The row as written, if it was the last that its writer had seen."""
        row = self.row
        if lease.revision != (row.revision if row else 0):
            return None
        if row is not None:
            assert lease.epoch >= row.epoch, "an epoch fell"
            assert not row.released or lease.epoch > row.epoch, "an ended lease was renewed"
            assert lease.owner == row.owner or lease.epoch > row.epoch, "two owners of an epoch"
        self.row, self.written = replace(lease, revision=lease.revision + 1), self.now
        return self.row

    # -- the machine ----------------------------------------------------------------------

    def woken(self) -> None:
        self.wake = float("inf")
        self.step(machine.Woken())

    def step(self, given: machine.Input) -> None:
        before = self.machine.valid_until
        for effect in self.machine.step(given, self.now):
            self.carry_out(effect, given)
        if isinstance(given, machine.Written):
            if self.machine.state is machine.State.HELD:
                self.confirmed = max(self.confirmed, given.sent)
        else:
            assert self.machine.valid_until <= before, f"{given} extends the session"
        self.session.epoch = self.machine.epoch
        self.session.valid_until = self.machine.valid_until
        self.session.start_until = self.machine.start_until
        self.check()
        if self.machine.state is machine.State.HELD:
            stale = self.now >= self.machine.start_until
            assert stale or not self.machine.doubted
            assert self.machine.doubted or not stale or self.wake <= self.now
        if self.machine.state is not machine.State.LEFT:
            assert self.call or self.wake < float("inf"), "nothing will ever bring it on"

    def carry_out(self, effect: machine.Effect, given: machine.Input) -> None:
        match effect:
            case machine.Look() | machine.Write():
                self.ask(effect)
            case machine.Wake(at=at):
                self.wake = at
            case machine.Began(epoch=epoch, sent=sent):
                assert isinstance(given, machine.Written) and sent == given.sent
                assert epoch > max(self.epochs, default=0), "an epoch came again"
                self.epochs.append(epoch)
                self.confirmed = sent
                self.tenures.append((Tenure(SEAT, self.session, epoch), True))
            case machine.Ended():
                assert self.epochs[-1] not in self.over, "it ended twice"
                self.over.add(self.epochs[-1])
            case machine.Left():
                self.left += 1
                self.over.update(self.epochs)

    def ask(self, effect: machine.Look | machine.Write) -> None:
        assert self.call is None, "two requests at a time"
        if isinstance(effect, machine.Write):
            assert effect.lease.epoch not in self.over, "a lapsed lease is renewed"
            assert effect.lease.owner == OWNER
        self.call = Call(effect, self.now)

    # -- what always holds ----------------------------------------------------------------

    def check(self) -> None:
        made = self.machine
        if made.state is machine.State.HELD:
            assert made.valid_until == self.confirmed + self.timing.valid_s, "not from its sending"
            assert made.start_until == self.confirmed + self.timing.confirm_s
        else:
            assert made.valid_until == made.start_until == float("-inf")
        if self.now < made.valid_until:
            row = self.row
            assert row is not None and not row.released, "acts under a row that is free"
            assert (row.owner, row.epoch) == (OWNER, made.epoch), "acts under another's row"
        self.tenures = [(one, self.lives(one, before)) for one, before in self.tenures]

    def lives(self, tenure: Tenure, before: bool) -> bool:
        """A right to a seat ends once, however the session goes on."""
        now = tenure.may_settle(self.now)
        assert not now or before, "a right that had ended came back"
        assert now or not tenure.may_start(self.now), "starts what it may not settle"
        return now
