"""Carrying out the faults of a plan, and noticing the deaths that failpoints bring about.

One victim has one fault at a time; at least one node is always left alone.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct

from actors.watchdog import STALLED
from tests.chaos.fleet import Fleet
from tests.chaos.plan import Budget, Fault, Kind, comes, draw_failpoint
from tests.chaos.processes import Life, NodeProcess, until

KILLED = -9
FAILED = 1

BROKERS: tuple[Kind, ...] = ("broker-kill", "broker-stop", "broker-cut", "full-disk")
"""What happens to a server; one at a time, so that two of three are always there."""

SLACK_S = 5.0
"""So long after an outage a start may still fail of it."""


class Done(Struct):
    """A fault as it was carried out, on the monotonic clock. `how`: at which failpoint, or what
    was done to the link."""

    kind: Kind
    victim: str
    how: str
    began: float
    ended: float = 0.0


class Nemesis:
    """`done` are the faults so far; `surprises` are what no fault of ours explains."""

    def __init__(
        self, fleet: Fleet, budget: Budget, ttl_s: float, *, failpoints: bool = True
    ) -> None:
        self.fleet = fleet
        self.done: list[Done] = []
        self.surprises: list[str] = []
        self.healing = False
        self.applied = 0
        self._budget = budget
        self._failpoints = failpoints
        self._ttl_s = ttl_s
        self._hurt: set[str] = set()
        self._next: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None

    def count(self, kind: Kind) -> int:
        return sum(1 for one in self.done if one.kind == kind)

    def where(self, kind: Kind) -> dict[str, int]:
        return dict(Counter(one.how for one in self.done if one.kind == kind))

    # -- the plan -----------------------------------------------------------------------

    async def play(self, plan: Sequence[Fault], go_on: Callable[[], bool]) -> None:
        """All of it, or as much as there is time for; then everything is healed."""
        self._watch = asyncio.create_task(self._watch_lives())
        for fault in plan:
            if not go_on():
                break
            if self.count(fault.kind) >= self._budget.of(fault.kind):
                continue  # failpoints were faster
            await asyncio.sleep(fault.pause_s)
            await until(lambda f=fault: self._start(f) or not go_on(), 120, fault.kind)
        while go_on() and self.count("kill") < self._budget.kill and self._armed():
            await asyncio.sleep(0.2)
        await self.heal()

    def _start(self, fault: Fault) -> bool:
        """Begin it if there is somebody to suffer it."""
        if fault.kind in BROKERS:
            if "broker" in self._hurt:
                return False
            self._spawn("broker", self._broker(fault))
            return True
        free = [n for n in self.fleet.nodes if n.running and n.name not in self._hurt]
        if len(free) < 2:
            return False
        node = free[fault.victim % len(free)]
        act = {
            "kill": self._kill,
            "stop": self._stop,
            "cut": self._cut,
            "move": self._move,
            "roll": self._roll,
            "apply": self._apply,
        }[fault.kind]
        self._spawn(node.name, act(node, fault))
        return True

    def _spawn(self, victim: str, work: Coroutine[Any, Any, None]) -> None:
        self._hurt.add(victim)

        async def run() -> None:
            try:
                await work
            except (AssertionError, OSError) as error:
                self.surprises.append(f"{victim}: {error}")
            finally:
                self._hurt.discard(victim)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note(self, kind: Kind, victim: str, how: str) -> Done:
        done = Done(kind, victim, how, time.monotonic())
        self.done.append(done)
        return done

    # -- the faults ---------------------------------------------------------------------

    async def _kill(self, node: NodeProcess, fault: Fault) -> None:
        done = self._note("kill", node.name, "at random")
        self._next[node.name] = fault.failpoint
        await node.kill()
        await self._again(node, fault.share * self._ttl_s)
        done.ended = time.monotonic()

    async def _again(self, node: NodeProcess, after_s: float) -> None:
        await asyncio.sleep(after_s)
        point = self._next.pop(node.name, "")
        kind: Kind = "stop" if point.endswith("=stop") else "kill"
        spent = self.healing or not self._failpoints or self.count(kind) >= self._budget.of(kind)
        node.start("" if spent else point)
        # A failpoint may end it on its way up: the watch sees to that.
        while node.running and not node.frozen and await node.call("status", 2.0) is None:
            await asyncio.sleep(0.1)

    async def _stop(self, node: NodeProcess, fault: Fault) -> None:
        done = self._note("stop", node.name, "at random")
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.share * self._ttl_s)
        node.signal(signal.SIGCONT)
        done.ended = time.monotonic()

    async def _cut(self, node: NodeProcess, fault: Fault) -> None:
        done = self._note("cut", node.name, fault.link)
        link = self.fleet.links[self.fleet.nodes.index(node)]
        link.set(fault.link)
        await asyncio.sleep(fault.share * self._ttl_s)
        link.set("open")
        done.ended = time.monotonic()

    async def _move(self, node: NodeProcess, fault: Fault) -> None:
        its = [seat for seat, owner in self.fleet.owners().items() if owner == node.name]
        others = [n for n in self.fleet.nodes if n.running and n is not node]
        if its and others:
            seat, to = its[fault.victim % len(its)], others[fault.other % len(others)]
            done = self._note("move", node.name, "seat move")
            await node.call("seat.move", handle=seat, node=to.name)
            done.ended = time.monotonic()

    async def _roll(self, node: NodeProcess, fault: Fault) -> None:
        done = self._note("roll", node.name, "SIGTERM")
        node.signal(signal.SIGTERM)
        await until(lambda: not node.running or node.frozen, 30, f"{node.name} drained")
        if node.frozen:  # a failpoint of its drain
            await self._froze(node, node.lives[-1].failpoint)
            await until(lambda: not node.running, 30, f"{node.name} drained")
        if node.lives[-1].code not in (0, KILLED):
            self.surprises.append(f"{node.name} ended with {node.lives[-1].code} after SIGTERM")
        self._next[node.name] = fault.failpoint
        await self._again(node, 0.0)
        done.ended = time.monotonic()

    async def _apply(self, node: NodeProcess, fault: Fault) -> None:
        """Another revision, by way of this node; it may die of it, and then nobody knows."""
        done = self._note("apply", node.name, "a revision")
        self.applied += 1
        text = self.fleet.company_text(self.applied)
        await node.call("apply", text=text, name="company.yaml")
        done.ended = time.monotonic()

    async def _broker(self, fault: Fault) -> None:
        servers = self.fleet.servers
        server = servers[fault.victim % len(servers)]
        if len(servers) > 1 and fault.other % 4:  # mostly the leader
            server = await self.fleet.leader() or server
        role = "its leader" if server is await self.fleet.leader() else "a follower"
        done = self._note(fault.kind, server.name, role if len(servers) > 1 else "the only one")
        length_s = fault.share * self._ttl_s
        if fault.kind == "broker-kill":
            await server.kill()
            await asyncio.sleep(length_s)
            await server.start()
        elif fault.kind == "full-disk":
            assert server.disk is not None
            server.disk.fill()
            await asyncio.sleep(length_s)
            done.how += ", and it said so" if server.says_full() else ", unnoticed"
            server.disk.free()
            await server.kill()  # by itself it would not write again: its operator starts it anew
            await server.start()
        elif fault.kind == "broker-stop" or self.fleet.networks is None:
            server.freeze()
            await asyncio.sleep(length_s)
            server.thaw()
        else:
            number = servers.index(server)
            self.fleet.networks.cut(number, off=True)
            await asyncio.sleep(length_s)
            self.fleet.networks.cut(number, off=False)
        done.ended = time.monotonic()
        if len(servers) > 1:  # never two of three at once: it has to catch up first
            await until(self._caught_up, 120, f"{server.name} has caught up")
            await asyncio.sleep(1.0)

    async def _caught_up(self) -> bool:
        return not await self.fleet.behind()

    # -- what failpoints do ---------------------------------------------------------------

    async def _watch_lives(self) -> None:
        while True:
            for node in self.fleet.nodes:
                if node.name in self._hurt:
                    continue
                point = node.lives[-1].failpoint
                if not node.running:
                    self._spawn(node.name, self._died(node, point))
                elif node.frozen:
                    self._spawn(node.name, self._froze(node, point))
            await asyncio.sleep(0.03)

    async def _died(self, node: NodeProcess, point: str) -> None:
        life = node.lives[-1]
        if self._had_no_broker(life) or self._woke_stalled(node, life):
            await self._again(node, 0.0)  # as its supervisor would
            return
        if life.code != KILLED or not point.endswith("=kill"):
            self.surprises.append(
                f"{life.incarnation} ended by itself with {life.code}: {node.words()[-300:]}"
            )
        done = self._note("kill", node.name, point.partition(":")[0] or "by itself")
        done.began = life.ended
        index = len(self.done)
        self._next[node.name] = self._another(index)
        await self._again(node, (0.0, 0.3, 1.3)[index % 3] * self._ttl_s)
        done.ended = time.monotonic()

    def _had_no_broker(self, life: Life) -> bool:
        """A node that starts while its broker is away says so and leaves."""
        outages = [one for one in self.done if one.kind in BROKERS]
        return life.code == FAILED and any(
            (one.ended or life.ended) > life.began - SLACK_S and one.began < life.ended
            for one in outages
        )

    def _woke_stalled(self, node: NodeProcess, life: Life) -> bool:
        """Its watchdog found the loop behind after a stop, and asked for another start."""
        stops = [one for one in self.done if one.kind == "stop" and one.victim == node.name]
        return life.code == STALLED and any(
            life.began < one.began and (one.ended or life.ended) > life.ended - SLACK_S
            for one in stops
        )

    async def _froze(self, node: NodeProcess, point: str) -> None:
        done = self._note("stop", node.name, point.partition(":")[0] or "by itself")
        await asyncio.sleep(2 * self._ttl_s)
        node.signal(signal.SIGCONT)
        node.lives[-1].failpoint = ""
        done.ended = time.monotonic()

    def _another(self, number: int) -> str:
        """The failpoint after a failpoint: of the same distribution, by the number of the fault."""
        rng = random.Random(number * 7919)
        return draw_failpoint(rng, applies=bool(self._budget.apply))

    def _armed(self) -> bool:
        return any(comes(node.lives[-1].failpoint) for node in self.fleet.nodes)

    # -- the end --------------------------------------------------------------------------

    async def heal(self) -> None:
        """Everything is there again, and nothing is armed."""
        self.healing = True
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=60)
        if self._watch is not None:
            self._watch.cancel()
        for link in self.fleet.links:
            link.set("open")
        for node in self.fleet.nodes:
            if node.running and node.lives[-1].failpoint:
                self._note("kill", node.name, "to disarm it").ended = time.monotonic()
                await node.kill()
            if not node.running:
                node.start()
            node.signal(signal.SIGCONT)
        for node in self.fleet.nodes:
            await node.up()
