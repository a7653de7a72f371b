"""The system base: what a program holds to make actors, talk to them and end them."""

from __future__ import annotations

import asyncio
from functools import partial

from thespian.actors import ActorAddress

from actors.ports import Clock
from actors.system.actor import Actor
from actors.system.actor_cell import ActorCell
from actors.system.address import Address
from actors.system.cell import Cell
from actors.system.clock import LoopClock, SystemClock
from actors.system.endpoint import Reply, Tomb
from actors.system.messages import Snapshot
from actors.system.supervision import RESTART, Supervision
from actors.system.thespian_face import SHUTDOWN_S, ThespianFace
from actors.system.virtual import VirtualTime


class AsyncioSystemBase(ThespianFace):
    """Actors on one asyncio loop.

    Use it as it is from coroutines (`spawn`, `tell`, `aask`, `stop`, `shutdown_async`), or
    give it to Thespian: `ActorSystem(systemBase=base, transientUnique=True)`, then
    `base.bind(system)`. It binds to the loop that runs when it is first used; a program
    without a loop gets one in a thread.

    `clock` defaults to the machine's, on a virtual loop to the loop's. `seed` feeds the
    jitter of restarts, and the order of turns if `shuffle` is set (for simulations).
    `mailbox_bound` is the number of messages that wait for one actor before further ones
    become dead letters; what the system sends is exempt.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        mailbox_bound: int = 10_000,
        shuffle: bool = False,
    ) -> None:
        super().__init__(seed=seed, mailbox_bound=mailbox_bound, shuffle=shuffle)
        self._clock = clock

    @property
    def clock(self) -> Clock:
        """The actors' clock."""
        if self._clock is None:
            self.bind_loop()
            virtual = isinstance(self.loop, VirtualTime)
            self._clock = LoopClock(self.loop) if virtual else SystemClock()
        return self._clock

    def spawn(
        self,
        cls: type[Actor],
        *args: object,
        name: str = "",
        supervision: Supervision = RESTART,
    ) -> Address:
        """Make a top-level actor; call on the loop's thread. It is constructed soon, and a
        constructor that raises is a failure for its supervision. RuntimeError once the system
        shuts down."""
        self.require_loop("spawn")
        if self.closing:
            raise RuntimeError("the actor system shuts down")
        cell = ActorCell(self, None, cls, args, name, supervision)
        self.tops[cell.address] = cell
        self.signal(cell.start)
        return cell.address

    async def aask(self, to: ActorAddress, message: object, timeout_s: float) -> object:
        """Send a message and return the first answer. The reply address is good for one
        message; later answers are dead letters. Raises TimeoutError."""
        self.require_loop("aask")
        future: asyncio.Future[object] = self.loop.create_future()
        address = self.new_address("ask")
        address.endpoint = Reply(self, address, future)
        self.resolve(to).endpoint.push(message, address)
        # Not asyncio.timeout, which costs as much again as the question: it would end the task,
        # and here it is enough to end the future.
        late = self.loop.call_later(timeout_s, _expire, future)
        try:
            return await future
        finally:
            late.cancel()
            address.endpoint = Tomb(self, address, "answered")

    async def stop(self, address: Address, timeout_s: float) -> bool:
        """End an actor, its children first. True once it is gone, False if it is not within
        `timeout_s`: then it is still on its way."""
        self.require_loop("stop")
        cell = address.endpoint
        if not isinstance(cell, Cell):
            return True
        gone: asyncio.Future[None] = self.loop.create_future()
        if cell.on_gone is None:
            cell.on_gone = []
        cell.on_gone.append(lambda: None if gone.done() else gone.set_result(None))
        self.signal(partial(cell.stop, "stop"))
        try:
            async with asyncio.timeout(timeout_s):
                await gone
        except TimeoutError:
            return False
        return True

    async def shutdown_async(self, timeout_s: float = SHUTDOWN_S) -> bool:
        """End all actors, the youngest top-level one first, each before the next. False if
        some were not gone in time: those go on to end."""
        self.bind_loop()
        self.closing = True
        deadline = self.loop.time() + timeout_s
        late = False
        while self.tops and not late:
            address = next(reversed(self.tops))
            late = not await self.stop(address, max(0.0, deadline - self.loop.time()))
        if late:
            self.begin_shutdown()
        return not late

    def tree(self) -> tuple[Snapshot, ...]:
        """All actors as they are now, the oldest first."""
        return tuple(cell.snapshot() for cell in self.tops.values())

    def as_base(self) -> AsyncioSystemBase:
        return self


def _expire(future: asyncio.Future[object]) -> None:
    """Nobody has answered in time."""
    if not future.done():
        future.set_exception(TimeoutError())
