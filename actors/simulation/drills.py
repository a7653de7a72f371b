"""The calm after the faults: what is left is worked off, then six things are done on purpose.

Liveness can be promised only where nothing goes wrong, so each drill has the fleet to itself:
a leader is lost for less than a lease outlasts, brakes are lifted, a node leaves, a node dies.
Then a command comes to a held seat, and mailboxes are ensured and deleted.
"""

from __future__ import annotations

import asyncio
from typing import Final

from actors.machines import signals
from actors.seat import INBOX
from actors.simulation.checkers.excuses import FOUND_S
from actors.simulation.faults import Decision
from actors.simulation.fleet import Fleet
from actors.simulation.host import Host
from actors.simulation.trouble import Trouble
from actors.simulation.workload import Workload

DRAIN_S: Final = 60.0
"""What is left after the last fault is worked within this."""

BACKLOG_S: Final = 30.0
"""... and what a conversation with poison in it needs to use up its budget of deliveries."""

TICK_S: Final = 0.5
DRILL: Final = "drill"

NOBODY: Final = "nobody"
"""A seat that there is not: but for one drill it has no mailbox."""


class Drills:
    """In order; about 85 seconds, after the 60 of working off."""

    def __init__(self, fleet: Fleet, workload: Workload, trouble: Trouble) -> None:
        self.fleet = fleet
        self.workload = workload
        self.trouble = trouble

    async def run(self) -> None:
        await self._worked_off()
        await self._lose_the_leader()
        await self._lift()
        await self._leave()
        await self._kill()
        await self._command()
        await self._mailboxes()
        await self._excuses_run_out()
        await self._patiently()

    async def tick(self) -> None:
        """Twice a second, for as long as it is not cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            fleet = self.fleet
            fleet.liveness.tick(fleet.world.now, fleet.site.out(), fleet.alive())

    async def _worked_off(self) -> None:
        """L4: all of it, in time. What the broker gave up on waits for nobody: that is S12."""
        fleet = self.fleet
        await asyncio.sleep(DRAIN_S)
        for one in fleet.site.audit().retained:
            if one.stuck:
                text = f"{one.seat} {one.seq} is stranded after {one.dc} deliveries"
                fleet.fail("S12", text)
                return
        if any(self._left(seat) for seat in fleet.site.seats):
            await asyncio.sleep(BACKLOG_S)
        await self._patiently()
        for seat in fleet.site.seats:
            if left := self._left(seat):
                which = f"{len(left)} messages wait, {left[0]} the first"
                fleet.fail("L4", f"{seat}: {which}, {DRAIN_S:g} s after the last fault")

    async def _patiently(self) -> None:
        """L4 is a minute and the time that the backlog takes."""
        fleet = self.fleet
        until = fleet.world.now + fleet.site.patience_s()
        while any(self._left(seat) for seat in fleet.site.seats):
            if fleet.world.now >= until:
                return
            await asyncio.sleep(TICK_S)

    def _left(self, seat: str) -> list[int]:
        """But for what has an excuse: that runs out by itself."""
        excuses = self.fleet.liveness.excuses
        return [seq for seq in self.fleet.site.left(seat) if (seat, seq) not in excuses]

    async def _command(self) -> None:
        """S21: it is obeyed although the inbox is held and has mail."""
        seat = self.fleet.site.seats[-1]
        host = self.fleet.holder(seat)
        if host is None or host.runtime is None:
            self.fleet.fail("L4", f"{seat} is held by nobody after the last drill")
            return
        runtime = host.runtime
        self._drill("command", seat)
        host.run(lambda: runtime.brake(seat, INBOX, signals.Hold(DRILL)))
        await asyncio.sleep(1.0)
        self.workload.post(seat)
        await self.workload.command(seat)
        await asyncio.sleep(2.0)
        host.run(lambda: runtime.brake(seat, INBOX, signals.Lift(DRILL)))
        await asyncio.sleep(12.0)

    async def _mailboxes(self) -> None:
        """S20: to ensure what is there changes nothing, and to delete a mailbox takes it and its
        mail although nobody is attached to it."""
        site = self.fleet.site
        self._drill("mailboxes")
        for seat in site.seats:
            site.ensure(seat)
        site.ensure(NOBODY)
        for _ in range(3):
            await self.workload.store(NOBODY)
        site.ensure(NOBODY)
        if not site.delete(NOBODY) or site.delete(NOBODY):
            self.fleet.fail("S20", "to delete a mailbox does not say whether there was one")
        await self.workload.nowhere()

    async def _excuses_run_out(self) -> None:
        """What the last drills lost is looked for, too, before all is judged."""
        for _ in range(round(FOUND_S / TICK_S) + 1):
            if not self.fleet.liveness.excuses:
                return
            await asyncio.sleep(TICK_S)

    def _drill(self, code: str, seat: str = "") -> None:
        self.fleet.history.add("drill", seat=seat, code=code)

    async def _lose_the_leader(self) -> None:
        """L7: for 8 s, which a lease outlasts."""
        self._drill("leader_loss")
        self.trouble.healed = False
        self.trouble.befall(Decision(0.0, "leader_loss", 0, 8.0))
        await asyncio.sleep(15.0)
        self.trouble.healed = True
        self._drill("leader_back")

    async def _lift(self) -> None:
        """L8: what came in the meantime is worked at once, whichever brake was on."""
        seats = self.fleet.site.seats
        await self._braked_and_lifted(seats[0], signals.Hold(DRILL), signals.Lift(DRILL))
        await self._braked_and_lifted(seats[-1], signals.Quiesce(), signals.Unquiesce())

    async def _braked_and_lifted(self, seat: str, on: signals.Brake, off: signals.Brake) -> None:
        host = self.fleet.holder(seat)
        if host is None or host.runtime is None:
            self.fleet.fail("L4", f"{seat} is held by nobody in the calm")
            return
        runtime = host.runtime
        host.run(lambda: runtime.brake(seat, INBOX, on))
        await asyncio.sleep(1.0)
        self.workload.post(seat)
        await asyncio.sleep(1.5)
        self._drill("lift", seat)
        host.run(lambda: runtime.brake(seat, INBOX, off))
        await asyncio.sleep(3.0)

    def _seats_of(self, host: Host) -> list[str]:
        return [seat for seat in self.fleet.site.seats if self.fleet.holder(seat) is host]

    async def _leave(self) -> None:
        """L2: who comes after is at work at once."""
        host = self.fleet.hosts[-1]
        if not host.works or len(self.fleet.hosts) < 2:
            return
        seats = self._seats_of(host)
        for seat in seats:
            for _ in range(4):
                self.workload.post(seat)
        await asyncio.sleep(0.01)
        for seat in seats:
            if len(self.fleet.site.left(seat)) > 1:
                self._drill("leave", seat)
        self.fleet.leave(host, 1.0)
        await asyncio.sleep(12.0)

    async def _kill(self) -> None:
        """L1: what a killed node had in its hands is worked by another in time."""
        host = self.fleet.hosts[0]
        if not host.works or len(self.fleet.hosts) < 2:
            return
        seats = self._seats_of(host)
        for seat in seats:
            for _ in range(3):
                self.workload.post(seat)
        await asyncio.sleep(0.02)
        out = {seat for seat, _ in self.fleet.site.out()}
        self.fleet.crash(host, 3600.0, "drill")
        for seat in seats:
            if seat in out:
                self._drill("crash", seat)
        await asyncio.sleep(self.fleet.timing.ttl_s + 12.0)
