"""What the fleet has to work: messages with known keys, published until the broker has them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from actors.ports import Unavailable
from actors.simulation.checkers.checker import CORRUPT
from actors.simulation.fleet import Fleet
from actors.simulation.site import Posting

AGAIN_S: Final = 1.0
LOST_ACK: Final = 0.03
"""How often a publisher does not hear that its message was stored, and says it again."""

STAMP_SPREAD_S: Final = 2.0
"""Publishers' clocks differ: what is stored later may be older."""


class Workload:
    """Publishers stand outside the fleet: no fault of a node befalls them."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.broker_answers = True
        self.chance = Random(f"workload {fleet.plan.seed}")  # noqa: S311
        self._of_commands = Random(f"commands {fleet.plan.seed}")  # noqa: S311
        self._count = 0
        self._commands = 0
        self._open: dict[asyncio.Task[None], None] = {}
        self.ended = False

    async def run(self) -> None:
        """Until `end`."""
        knobs, chance = self.fleet.plan.knobs, self.chance
        while True:
            await asyncio.sleep(chance.expovariate(knobs.publish_rate * knobs.seats / 6))
            if self.ended:
                return
            if chance.random() < 0.01:
                await self.nowhere()
            else:
                self.post(chance.choice(self.fleet.site.seats), self._flavour())

    def end(self) -> None:
        """Nothing new is published; what is on its way goes on."""
        self.ended = True

    def _flavour(self) -> str:
        knobs, chance = self.fleet.plan.knobs, self.chance.random()
        if chance < knobs.corrupt_chance:
            return CORRUPT
        return "poison" if chance < knobs.corrupt_chance + knobs.poison_chance else ""

    def storm(self, seat: str, count: int) -> None:
        """Many of one conversation at once."""
        for _ in range(count):
            self.post(seat, "", key=f"{seat}-storm")

    def post(self, seat: str, flavour: str = "", key: str = "") -> str:
        """Begin to publish one message; its id."""
        self._count += 1
        chance = self.chance
        msg = f"{flavour or 'm'}-{self._count}"
        key = key or f"{seat}-{chance.randrange(self.fleet.plan.knobs.keys)}"
        stamp = round(self.fleet.world.now - chance.random() * STAMP_SPREAD_S, 6)
        posting = Posting(seat, msg, key, stamp, flavour)
        self.fleet.history.add("pub_req", seat=seat, msg=msg, key=key, sent=stamp)
        task = self.fleet.world.create_task(self._publish(posting))
        self._open[task] = None
        task.add_done_callback(lambda done: self._open.pop(done, None))
        return msg

    async def _publish(self, posting: Posting) -> None:
        await asyncio.sleep(self.chance.random() * 0.003)
        while True:
            try:
                if not self.broker_answers:
                    raise Unavailable("the broker does not answer")
                seq, known = await self.fleet.site.publish(posting)
            except Unavailable:
                await asyncio.sleep(AGAIN_S)
                continue
            code = "dup" if known else ""
            self.fleet.history.add(
                "pub_ack", seat=posting.seat, msg=posting.msg, seq=seq, code=code
            )
            if self.chance.random() >= LOST_ACK:
                return
            await asyncio.sleep(AGAIN_S)

    async def store(self, seat: str) -> None:
        """Publish one, once, to where nobody works it."""
        self._count += 1
        posting = Posting(seat, f"m-{self._count}", f"{seat}-0", self.fleet.world.now)
        self.fleet.history.add("pub_req", seat=seat, msg=posting.msg, key=posting.key)
        seq, _ = await self.fleet.site.publish(posting)
        self.fleet.history.add("pub_ack", seat=seat, msg=posting.msg, seq=seq)

    async def run_commands(self) -> None:
        """Control mail for whoever, as often as the plan has it, until `end`."""
        chance, rate = self._of_commands, self.fleet.plan.knobs.command_rate
        while not self.ended:
            await asyncio.sleep(chance.expovariate(rate))
            await self.command(chance.choice(self.fleet.site.seats))

    async def command(self, seat: str) -> None:
        """Publish to the seat's control mailbox until the broker has it."""
        self._commands += 1
        msg = f"c-{self._commands}"
        while True:
            try:
                if not self.broker_answers:
                    raise Unavailable("the broker does not answer")
                await self.fleet.site.command(seat, msg)
            except Unavailable:
                await asyncio.sleep(AGAIN_S)
                continue
            return

    async def nowhere(self) -> None:
        """To a seat that there is not: whoever does it has to be told."""
        self._count += 1
        msg = f"nowhere-{self._count}"
        if self.broker_answers and not await self.fleet.site.publish_nowhere(msg):
            self.fleet.history.add("pub_ack", seat="nobody", msg=msg)
        else:
            self.fleet.history.add("pub_none", seat="nobody", msg=msg)
