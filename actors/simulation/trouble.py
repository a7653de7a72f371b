"""Carries out the decisions of a plan, each at its time, and ends whatever it began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from actors.machines import signals
from actors.seat import INBOX
from actors.simulation.faults import Decision
from actors.simulation.fleet import Fleet
from actors.simulation.host import Host
from actors.simulation.workload import Workload

OPERATOR: Final = "operator"


class Trouble:
    """What it does to a line or a brake counts how often it was done: two cuts that overlap end
    with the later one."""

    def __init__(self, fleet: Fleet, workload: Workload) -> None:
        self.fleet = fleet
        self.workload = workload
        self.world = fleet.world
        self._cuts: dict[tuple[int, str], int] = {}
        self._since: dict[int, float] = {}
        self._outages = 0
        self._silent_since = 0.0
        self._brakes: dict[tuple[str, str], Host] = {}
        self.healed = False

    def begin(self, decisions: Iterable[Decision]) -> None:
        """From now on each befalls at its time."""
        self._next(iter(decisions), self.world.now)

    def _next(self, left: Iterator[Decision], begun: float) -> None:
        decision = next(left, None)
        if decision is not None:
            self.world.call_at(begun + decision.t, self._one, decision, left, begun)

    def _one(self, decision: Decision, left: Iterator[Decision], begun: float) -> None:
        self.befall(decision)
        self._next(left, begun)

    def befall(self, decision: Decision) -> None:
        """It happens now."""
        act = getattr(self, f"_{decision.kind}")
        if not self.healed:
            act(decision)

    def _note(self, decision: Decision) -> None:
        node = self._host(decision).name if decision.node >= 0 else ""
        self.fleet.history.add(
            "fault", node=node, code=decision.kind, sent=decision.length_s, key=decision.text
        )

    def _host(self, decision: Decision) -> Host:
        hosts = self.fleet.hosts
        return hosts[decision.node % len(hosts)]

    def _seat(self, decision: Decision) -> str:
        seats = self.fleet.site.seats
        return seats[int(decision.x) % len(seats)]

    def _later(self, after_s: float, act: Callable[[], object]) -> None:
        self.world.call_later(after_s, act)

    # -- processes ------------------------------------------------------------------------

    def _crash(self, decision: Decision) -> None:
        self.fleet.crash(self._host(decision), decision.length_s, "")

    def _failpoint(self, decision: Decision) -> None:
        self._note(decision)
        self._host(decision).points[decision.text] = int(decision.x), decision.length_s

    def _pause(self, decision: Decision) -> None:
        self.fleet.pause(self._host(decision), decision.length_s, int(decision.x))

    def _leave(self, decision: Decision) -> None:
        self.fleet.leave(self._host(decision), decision.length_s)

    def _jump(self, decision: Decision) -> None:
        host = self._host(decision)
        if host.up:
            self._note(decision)
            host.clock.skew_s += decision.x

    # -- lines ----------------------------------------------------------------------------

    def _cut(self, decision: Decision) -> None:
        self._note(decision)
        self._cut_line(self._host(decision), decision.text, decision.length_s)

    def _cut_line(self, host: Host, way: str, length_s: float) -> None:
        if self.healed:  # the last of a swizzle, whose time had not come
            return
        ways = ("up", "down") if way == "both" else (way,)
        if host.line.up and host.line.down:
            self._since[host.index] = self.world.now
        for one in ways:
            self._cuts[host.index, one] = self._cuts.get((host.index, one), 0) + 1
            setattr(host.line, one, False)
        self._later(length_s, partial(self._mend_line, host, ways))

    def _mend_line(self, host: Host, ways: tuple[str, ...]) -> None:
        for one in ways:
            left = self._cuts.get((host.index, one), 0) - 1
            self._cuts[host.index, one] = max(0, left)
            if left <= 0:
                setattr(host.line, one, True)
        if host.line.up and host.line.down:
            self.fleet.history.add("fault", node=host.name, code="mended")
            self.fleet.mend(host, self._since.get(host.index, self.world.now))

    def _swizzle(self, decision: Decision) -> None:
        """Cut one after the other, and mended in another order."""
        self._note(decision)
        for host in self.fleet.hosts:
            begin_s = self.fleet.chance.random() * 2.0
            length_s = decision.length_s * self.fleet.chance.uniform(0.3, 1.0)
            self._later(begin_s, partial(self._cut_line, host, "both", length_s))

    def _slow(self, decision: Decision) -> None:
        self._note(decision)
        line = self._host(decision).line
        line.slow = decision.x
        self._later(decision.length_s, partial(setattr, line, "slow", 1.0))

    def _slow_acks(self, decision: Decision) -> None:
        self._note(decision)
        line = self._host(decision).line
        line.ack_delay_s = 5.0
        self._later(decision.length_s, partial(setattr, line, "ack_delay_s", 0.0))

    # -- the broker -----------------------------------------------------------------------

    def _broker_restart(self, decision: Decision) -> None:
        """It answers nobody, comes back on its storage, and everybody connects anew."""
        self._note(decision)
        self._silence()
        self.fleet.site.down(down=True)
        self._later(decision.length_s, self._restarted)

    def _restarted(self) -> None:
        if self.healed:  # it was back by then
            return
        self.fleet.history.add("fault", code="broker_back")
        self.fleet.site.restart()
        self.fleet.site.down(down=False)
        self._answer()

    def _leader_loss(self, decision: Decision) -> None:
        """Writes time out, and what they did is unknown; reads at the old leader go on."""
        self._note(decision)
        for host in self.fleet.hosts:
            host.line.old = host.index == decision.node or self.fleet.chance.random() < 0.3
        self.fleet.site.old_leader(on=True)
        self._silence()
        self._later(decision.length_s, self._elected)

    def _elected(self) -> None:
        self.fleet.history.add("fault", code="leader_back")
        self.fleet.site.old_leader(on=False)
        self._answer()

    def _silence(self) -> None:
        if not self._outages:
            self._silent_since = self.world.now
        self._outages += 1
        for host in self.fleet.hosts:
            host.line.mute = True
        self.workload.broker_answers = False

    def _answer(self) -> None:
        """Unless another outage goes on."""
        self._outages = max(0, self._outages - 1)
        if self._outages:
            return
        self.workload.broker_answers = True
        for host in self.fleet.hosts:
            host.line.mute = host.line.old = False
            parked, host.line.parked = host.line.parked, []
            for act in parked:
                self.world.call_soon(act)
            mend = partial(self.fleet.mend, host, self._silent_since)
            self._later(self.fleet.chance.random(), mend)

    def _redeliver(self, decision: Decision) -> None:
        if self.fleet.site.redeliver(self._seat(decision), self.fleet.chance):
            self._note(decision)

    def _wipe(self, decision: Decision) -> None:
        self._note(decision)
        self.fleet.site.wipe()
        self.fleet.history.add("wiped")

    # -- watches --------------------------------------------------------------------------

    def _watch_gap(self, decision: Decision) -> None:
        self._note(decision)
        host = self._host(decision)
        host.watch.gap = True
        self._later(decision.length_s, partial(self._gap_over, host))

    def _gap_over(self, host: Host) -> None:
        host.watch.gap = False
        if host.works:
            host.office.resync()

    def _watch_late(self, decision: Decision) -> None:
        self._note(decision)
        watch = self._host(decision).watch
        watch.late_s = decision.x
        self._later(decision.length_s, partial(setattr, watch, "late_s", 0.0))

    def _watch_twice(self, decision: Decision) -> None:
        self._note(decision)
        watch = self._host(decision).watch
        watch.twice = True
        self._later(10.0, partial(setattr, watch, "twice", False))

    # -- operators ------------------------------------------------------------------------

    def _hold(self, decision: Decision) -> None:
        hold = signals.Hold(OPERATOR)
        self._brake(decision, "hold", hold, signals.Lift(OPERATOR))

    def _quiesce(self, decision: Decision) -> None:
        self._brake(decision, "quiesce", signals.Quiesce(), signals.Unquiesce())

    def _brake(self, decision: Decision, name: str, on: signals.Brake, off: signals.Brake) -> None:
        seat = self._seat(decision)
        host = self.fleet.holder(seat)
        if host is None or (seat, name) in self._brakes:
            return
        self._brakes[seat, name] = host
        host.run(partial(self._say, host, seat, name, on, "hold"))
        self._later(decision.length_s, partial(self._off, host, host.inc, seat, name, off))

    def _off(self, host: Host, inc: int, seat: str, name: str, off: signals.Brake) -> None:
        if self._brakes.pop((seat, name), None) is None:
            return
        self.fleet.history.add("lift", node=host.name, inc=inc, seat=seat, code=name)
        if host.inc == inc:
            host.run(partial(self._say, host, seat, name, off, ""))

    async def _say(
        self, host: Host, seat: str, name: str, signal: signals.Brake, kind: str
    ) -> None:
        assert host.runtime is not None
        answer = await host.runtime.brake(seat, INBOX, signal)
        if answer is not None and kind and (seat, name) in self._brakes:
            host.note(kind, seat=seat, code=name)

    def _move(self, decision: Decision) -> None:
        seat = self._seat(decision)
        host, to = self.fleet.holder(seat), self._host(decision)
        if host is not None and host is not to and to.works:
            self._note(decision)
            host.run(partial(self._moved, host, seat, to.name))

    async def _moved(self, host: Host, seat: str, to: str) -> None:
        assert host.runtime is not None
        await host.runtime.move(seat, to)

    def _storm(self, decision: Decision) -> None:
        self._note(decision)
        self.workload.storm(self._seat(decision), 60)

    # -- the end of it --------------------------------------------------------------------

    def heal(self) -> None:
        """All lines are whole, all nodes run, no brake is on. The lines first: what a broker that
        answers again gives to a fetch is lost where that fetch's line is made anew in the same
        instant, and nobody would write down that it was handed out."""
        for (seat, name), host in list(self._brakes.items()):
            off = signals.Lift(OPERATOR) if name == "hold" else signals.Unquiesce()
            self._off(host, host.inc, seat, name, off)
        self.healed = True
        self._cuts.clear()
        for host in self.fleet.hosts:
            self._heal_host(host)
        if self._outages:
            self._outages = 1
            self.fleet.site.down(down=False)
            self.fleet.site.old_leader(on=False)
            self._answer()

    def _heal_host(self, host: Host) -> None:
        line = host.line
        line.up = line.down = True
        line.slow, line.ack_delay_s = 1.0, 0.0
        host.watch.gap, host.watch.late_s, host.watch.twice = False, 0.0, False
        host.points.clear()
        if host.process is not None and host.process.alive:
            self.fleet.resume(host, host.process)
            self.fleet.mend(host, self._since.get(host.index, self.world.now))
        elif not host.leaving:
            self.fleet.boot(host)
