"""The fleet: its nodes as processes that start, stand still, die and start again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from actors.machines.timing import Timing
from actors.simulation.checkers import Checker, Liveness, Rules, Violation, all_checkers
from actors.simulation.faults import Plan
from actors.simulation.history import History, Record
from actors.simulation.host import Host
from actors.simulation.process import Process, ProcessClock
from actors.simulation.site import Site
from actors.simulation.sometimes import Sometimes
from actors.simulation.wire import Wire
from actors.simulation.world import World

BROKER_NOTICES_S: Final = 30.0
"""A connection whose other end vanished behind a cut is given up by the broker within this."""

FIRST_VIOLATION_ENDS: Final = 1


class Fleet:
    """All that a run is made of. `violations` stops the world with its first entry."""

    def __init__(self, world: World, plan: Plan, history: History, rules: Rules) -> None:
        self.world = world
        self.plan = plan
        self.history = history
        self.timing = Timing()
        self._rules = rules
        self.violations: list[Violation] = []
        self.sometimes = Sometimes()
        self.checkers: Sequence[Checker] = all_checkers(rules, self._fail)
        for checker in self.checkers:
            checker.listen(history)
        self.sometimes.listen(history)
        self.chance = Random(f"fleet {plan.seed}")  # noqa: S311 - a simulation, not a secret
        self.hosts = [self._host(index) for index in range(plan.knobs.nodes)]
        self.owner: dict[str, tuple[str, int]] = {}
        self.site: Site
        history.hear(self._on_grant, ("grant",))
        history.hear(self._on_release, ("release",))

    def _host(self, index: int) -> Host:
        random = Random(f"line {self.plan.seed} {index}")  # noqa: S311
        host = Host(f"n{index + 1}", index, random)
        host.history = self.history
        host.crash = lambda restart_s, why: self.crash(host, restart_s, why)
        return host

    @property
    def liveness(self) -> Liveness:
        return next(checker for checker in self.checkers if isinstance(checker, Liveness))

    def _fail(self, invariant: str, text: str) -> None:
        self.violations.append(Violation(invariant, self.world.now, self.world.step, text))
        if len(self.violations) >= FIRST_VIOLATION_ENDS:
            self.world.stop()

    def fail(self, invariant: str, text: str) -> None:
        """A promise is broken."""
        self._fail(invariant, text)

    # -- who holds what, as the broker has it ----------------------------------------------

    def _on_grant(self, record: Record) -> None:
        self.owner[record.seat] = record.node, record.inc

    def _on_release(self, record: Record) -> None:
        self.owner.pop(record.seat, None)

    def holder(self, seat: str) -> Host | None:
        """The host whose living process holds the seat."""
        node, inc = self.owner.get(seat, ("", 0))
        for host in self.hosts:
            if host.name == node and host.inc == inc and host.works:
                return host
        return None

    def alive(self) -> dict[str, bool]:
        """Which processes run, and are neither stopped nor leaving."""
        return {
            host.id: host.works and not host.leaving
            for host in self.hosts
            if host.process is not None and not host.process.stopped
        }

    # -- lives ----------------------------------------------------------------------------

    def boot(self, host: Host) -> None:
        """Start a process, unless one runs."""
        if host.up:
            return
        host.inc += 1
        knobs, chance = self.plan.knobs, self.chance
        rate = 1.0 + chance.uniform(-knobs.drift_ppm, knobs.drift_ppm) * 1e-6
        process = Process(  # type: ignore[abstract] # what sockets and threads need
            self.world,
            f"{host.name}#{host.inc}",
            rate=rate,
            offset=chance.uniform(0.0, 1e6),
            seed=chance.getrandbits(32),
        )
        process.shuffle = knobs.shuffle
        host.process, host.runtime, host.leaving = process, None, False
        host.clock = ProcessClock(process, chance.uniform(-knobs.skew_s, knobs.skew_s))
        host.wire = Wire(self.world, process, host.line)
        host.office = self.site.join(host)
        self.history.add("fault", node=host.name, inc=host.inc, code="boot")
        process.bring(self._begin, host, process)

    def _begin(self, host: Host, process: Process) -> None:
        task = process.create_task(self.site.program(host))
        task.add_done_callback(lambda done: self._begun(host, process, done))

    def _begun(self, host: Host, process: Process, done: asyncio.Task[None]) -> None:
        """A program that could not start ends its process, and is started again."""
        if not done.cancelled() and done.exception() is not None and process.alive:
            self.history.add(
                "note", node=host.name, code=f"start failed: {done.exception()!r}"[:200]
            )
            self.world.call_soon(self.crash, host, 2.0, "start failed")

    def crash(self, host: Host, restart_s: float, why: str) -> None:
        """kill -9; another process of the node is started after `restart_s`."""
        process = host.process
        if process is None or not process.alive:
            return
        host.wire.hold_back(self.chance.randint(0, self.plan.knobs.hold_back))
        self.history.add("fault", node=host.name, inc=host.inc, code="crash", key=why)
        self._end(host, process)
        self.world.call_later(restart_s, self.boot, host)

    def _end(self, host: Host, process: Process, heard_s: float = 0.0) -> None:
        """`heard_s`: so long the broker is still at what the process had said before."""
        process.kill()
        host.runtime = None
        host.points.clear()
        office, wire = host.office, host.wire
        reached = host.line.up and not host.line.mute
        notices_s = host.line.latency() if reached else BROKER_NOTICES_S * self.chance.random()
        self.world.call_later(max(notices_s, heard_s), office.gone)
        wire.close()
        self._look_for_faults(process)

    def _look_for_faults(self, process: Process) -> None:
        """What raised in a process where nobody catches is a fault of the code under test."""
        for broken in process.broken:
            self.fail("code", f"{process.name}: {broken!r}"[:500])

    def pause(self, host: Host, length_s: float, calls: int) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        process = host.process
        if process is None or not process.alive or process.stopped:
            return
        process.stop_after(calls)
        host.wire.hold_back(self.chance.randint(0, self.plan.knobs.hold_back))
        self.history.add("fault", node=host.name, inc=host.inc, code="pause", sent=length_s)
        self.world.call_later(length_s, self.resume, host, process)

    def resume(self, host: Host, process: Process) -> None:
        if process.alive:
            self.history.add("fault", node=host.name, inc=host.inc, code="resume")
            process.resume()
            if host.process is process:
                host.wire.let_go()

    def mend(self, host: Host, since: float) -> None:
        """The line was broken since then, and is connected anew."""
        if host.works:
            host.office.mended(since)

    # -- leaving --------------------------------------------------------------------------

    def leave(self, host: Host, restart_s: float | None) -> None:
        """The node is told to stop: it drains, ends, and is started again after `restart_s`."""
        if not host.works or host.leaving:
            return
        host.leaving = True
        self.history.add("fault", node=host.name, inc=host.inc, code="leave")
        host.run(lambda: self._leave(host, restart_s))

    async def _leave(self, host: Host, restart_s: float | None) -> None:
        runtime, process = host.runtime, host.process
        assert runtime is not None and process is not None
        try:
            await runtime.drain(self._rules.drain_s)
            await runtime.stop()
        finally:
            if process.alive:
                self.world.call_soon(self._left, host, process, restart_s)

    def _left(self, host: Host, process: Process, restart_s: float | None) -> None:
        if process.alive and host.process is process:
            self.history.add("fault", node=host.name, inc=host.inc, code="left")
            self._end(host, process, max(0.0, host.line.said_until - self.world.now))
            if restart_s is not None:
                self.world.call_later(restart_s, self.boot, host)

    # -- the end --------------------------------------------------------------------------

    def close(self) -> None:
        """The run is over: no process outlives it."""
        for host in self.hosts:
            if host.process is not None and host.process.alive:
                self._look_for_faults(host.process)
                host.process.kill()
