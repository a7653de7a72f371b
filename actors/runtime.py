"""The face of the runtime: what a company engine starts, asks and stops."""

from __future__ import annotations

from collections.abc import Sequence

from thespian.actors import ActorSystem

from actors.messages import (
    Brake,
    Describe,
    Description,
    DrainNode,
    NodeDrained,
    NodeStarted,
    StartNode,
    Whereabouts,
)
from actors.node import NodeActor, NodeSpec
from actors.ports import Clock
from actors.system import Address, AsyncioSystemBase

START_TIMEOUT_S = 120.0
ASK_TIMEOUT_S = 5.0
DRAIN_MARGIN_S = 10.0


class SeatRuntime:
    """All actors of one node, in one Thespian actor system, on the running loop."""

    def __init__(self, spec: NodeSpec, *, clock: Clock | None = None, seed: int = 0) -> None:
        self._base = AsyncioSystemBase(clock=clock, seed=seed)
        self.system = ActorSystem(systemBase=self._base, transientUnique=True)
        self._root = self._base.spawn(NodeActor, spec, name="node")
        self._seats: dict[str, Address] = {}

    async def start(self) -> int:
        """Attach every mailbox; the number of seats. TimeoutError when the broker is mute."""
        started = await self._base.aask(self._root, StartNode(), timeout_s=START_TIMEOUT_S)
        assert isinstance(started, NodeStarted)
        return started.seats

    async def describe(self, name: str) -> Description | None:
        """How the consumer of this name stands; None where there is none."""
        address = await self._whereabouts(name)
        if address is None:
            return None
        answer = await self._base.aask(address, Describe(), timeout_s=ASK_TIMEOUT_S)
        assert isinstance(answer, Description)
        return answer

    async def brake(self, name: str, box: str, signal: object) -> bool:
        """Give a box one of the machine's brakes; False where there is no such consumer."""
        address = await self._whereabouts(name)
        if address is None:
            return False
        self._base.tell(address, Brake(box, signal))
        return True

    async def drain(self, bound_s: float) -> NodeDrained:
        """No new turns; running ones end within `bound_s`, the rest is handed back, confirmed."""
        timeout_s = bound_s + DRAIN_MARGIN_S
        drained = await self._base.aask(self._root, DrainNode(bound_s), timeout_s=timeout_s)
        assert isinstance(drained, NodeDrained)
        return drained

    async def stop(self) -> None:
        """Children before parents; then the system is gone."""
        await self._base.stop(self._root, timeout_s=ASK_TIMEOUT_S)
        self.system.shutdown()

    def tree(self) -> Sequence[object]:
        """The actors as they stand: name, class, state, mailbox depth, restarts, children."""
        return [self._base.tree()]

    async def _whereabouts(self, name: str) -> Address | None:
        if name not in self._seats:
            wanted = Whereabouts(name)
            answer = await self._base.aask(self._root, wanted, timeout_s=ASK_TIMEOUT_S)
            if not isinstance(answer, Address):
                return None
            self._seats[name] = answer
        return self._seats[name]
