"""The face of the runtime: what a company engine starts, asks and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from thespian.actors import ActorSystem

from actors.fleet_messages import Moved, MoveSeat, WhereIsSeat
from actors.machines import signals
from actors.membership import HANDOFFS, REBALANCE
from actors.messages import (
    Attach,
    BoxState,
    Brake,
    Braked,
    Consume,
    Describe,
    Description,
    Detach,
    Detached,
    DrainNode,
    InFlight,
    ListInFlight,
    NodeDrained,
    NodeStarted,
    NotStarted,
    Reconsider,
    Refused,
    Relabel,
    StandAside,
    StartNode,
    Stepped,
    Watch,
    Whereabouts,
)
from actors.node import GATEWAY, NodeActor, NodeSpec
from actors.ports import Clock, Consumed, Unavailable
from actors.system import (
    Actor,
    Address,
    AsyncioSystemBase,
    Snapshot,
    Supervision,
    Terminated,
    handles,
)

START_TIMEOUT_S: Final = 600.0
ASK_TIMEOUT_S: Final = 5.0
DRAIN_MARGIN_S: Final = 10.0

MAILBOX_BOUND: Final = 1_000_000
"""Commands among our own actors are bounded by what they are about (one fetch and a few
settlements a box), and none of them may be dropped: this only stops a runaway."""


class IdTaken(Exception):
    """Another process that lives goes by this node's id."""


STOP: Final = Supervision(on_failure="stop")


def _thespian(base: AsyncioSystemBase) -> ActorSystem:
    return ActorSystem(systemBase=base, transientUnique=True)  # type: ignore[no-untyped-call]


class _Watchman(Actor):
    """Says when the root is gone although nobody stopped it."""

    def __init__(self, root: Address, fallen: Callable[[str], None]) -> None:
        super().__init__()
        self._root = root
        self._fallen = fallen

    def pre_start(self) -> None:
        self.watch(self._root)

    @handles(Terminated)
    def on_terminated(self, terminated: Terminated, sender: Address) -> None:
        self._fallen(terminated.reason)


class SeatRuntime:
    """All actors of one node, in one Thespian actor system, on the running loop.

    `fallen(reason)` is called if the tree comes down by itself: what was in flight is then
    reclaimed by whoever attaches next.
    """

    def __init__(
        self,
        spec: NodeSpec,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        fallen: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._base = AsyncioSystemBase(clock=clock, seed=seed, mailbox_bound=MAILBOX_BOUND)
        # Thespian's own door to the same actors: for code written against its API.
        self.system = _thespian(self._base)
        self._base.bind(self.system)
        self._root = self._base.spawn(NodeActor, spec, name="node", supervision=STOP)
        self._watchman = self._base.spawn(_Watchman, self._root, fallen, name="watchman")
        self._epoch = spec.epoch
        self._in_fleet = spec.fleet is not None
        self._known: dict[str, Address] = {}

    async def start(self) -> int:
        """Attach every mailbox; the number of seats. Unavailable when the broker is mute,
        IdTaken where another process goes by this node's id."""
        try:
            started = await self._base.aask(self._root, StartNode(), timeout_s=START_TIMEOUT_S)
        except TimeoutError:
            why = f"not all mailboxes were attached within {START_TIMEOUT_S:.0f} s"
            raise Unavailable(f"the broker does not answer: {why}") from None
        if isinstance(started, NotStarted):
            raise IdTaken(started.why)
        assert isinstance(started, NodeStarted)
        return started.seats

    # -- consumers by name ------------------------------------------------------------

    async def consumer(self, name: str, *boxes: str) -> None:
        """Have a consumer that is attached by hand; made once, detached at first."""
        wanted = Consume(name, boxes)
        answer = await self._base.aask(self._root, wanted, timeout_s=ASK_TIMEOUT_S)
        assert isinstance(answer, Address)
        self._known[name] = answer

    async def attach(self, name: str, box: str, consumed: Consumed) -> None:
        """Begin to pull for a box; raises what the broker raised, or ValueError where it is
        attached already."""
        wanted = Attach(box, consumed, self._epoch)
        answer = await self._ask(name, wanted, START_TIMEOUT_S)
        if isinstance(answer, Refused):
            raise answer.error

    async def detach(self, name: str, box: str) -> bool:
        """Detach a box; False where there was nothing to let go of. No handler starts after
        this; one that runs is not waited for."""
        answer = await self._ask(name, Detach(box), START_TIMEOUT_S)
        return isinstance(answer, Detached) and answer.was_attached

    async def describe(self, name: str) -> Description | None:
        """How the consumer of this name stands; None where there is none."""
        answer = await self._ask(name, Describe())
        return answer if isinstance(answer, Description) else None

    async def brake(self, name: str, box: str, signal: signals.Brake) -> BoxState | None:
        """Give a box a brake; how it stood before, None where there is no such consumer."""
        answer = await self._ask(name, Brake(box, signal))
        return answer.before if isinstance(answer, Braked) else None

    async def watch(self, name: str, heard: Callable[[Stepped], None] | None) -> bool:
        """Call `heard` with each step of the consumer's machines, or nobody any more. It runs
        inside the actor: it may neither wait nor raise. False where there is no such consumer."""
        return isinstance(await self._ask(name, Watch(heard)), Description)

    async def in_flight(self) -> Sequence[InFlight]:
        """What this node was handed and has not settled yet, as its gateway knows it."""
        lines = await self._ask(GATEWAY, ListInFlight())
        return lines if isinstance(lines, tuple) else ()

    async def _ask(
        self, name: str, message: object, timeout_s: float = ASK_TIMEOUT_S
    ) -> object | None:
        """The answer of whoever has this name; None where nobody does. A seat that left when it was
        asked has not answered either. Raises TimeoutError."""
        address = await self._where(name)
        if address is None:
            return None
        try:
            return await self._base.aask(address, message, timeout_s=timeout_s)
        except TimeoutError:
            if await self._where(name) == address:
                raise
            return None

    async def _where(self, name: str) -> Address | None:
        """A seat of the fleet comes and goes; everything else is where it was."""
        if name not in self._known:
            wanted = Whereabouts(name)
            answer = await self._base.aask(self._root, wanted, timeout_s=ASK_TIMEOUT_S)
            if not isinstance(answer, Address):
                return await self._seat(name) if self._in_fleet and name != HANDOFFS else None
            self._known[name] = answer
        return self._known[name]

    async def _seat(self, handle: str) -> Address | None:
        answer = await self._ask(HANDOFFS, WhereIsSeat(handle))
        return answer if isinstance(answer, Address) else None

    # -- the fleet --------------------------------------------------------------------

    async def move(self, handle: str, to: str) -> Moved:
        """Send a seat of this node to another: it leaves when its running turn has ended."""
        answer = await self._ask(REBALANCE, MoveSeat(handle, to))
        return answer if isinstance(answer, Moved) else Moved("this node is in no fleet")

    def stand_aside(self, *, on: bool) -> None:
        """Give up this node's seats to others, each as its turn ends, and take none; or take
        some again. It is not waited for: the caller may be a turn that it waits for."""
        self._base.tell(self._root, StandAside(on))

    def relabel(self, labels: Mapping[str, str]) -> None:
        """Offer these labels to the fleet, until the process ends: seats come and go by them."""
        self._base.tell(self._root, Relabel(labels))

    def reconsider(self, facts: Mapping[str, str]) -> None:
        """The fleet's `seats` may answer something else from now on: seats that are gone are
        given up as their turns end, new ones are taken. `facts` is what this node's row says."""
        self._base.tell(self._root, Reconsider(facts))

    # -- the end ----------------------------------------------------------------------

    async def drain(self, bound_s: float) -> NodeDrained:
        """No new turns; running ones end within `bound_s`, the rest is handed back, confirmed."""
        timeout_s = bound_s + DRAIN_MARGIN_S
        drained = await self._base.aask(self._root, DrainNode(bound_s), timeout_s=timeout_s)
        assert isinstance(drained, NodeDrained)
        return drained

    async def stop(self) -> None:
        """Children before parents; then the system is gone."""
        await self._base.stop(self._watchman, timeout_s=ASK_TIMEOUT_S)
        await self._base.shutdown_async(ASK_TIMEOUT_S)

    def tree(self) -> Sequence[Snapshot]:
        """The actors as they stand: name, class, state, mailbox depth, restarts, children."""
        return self._base.tree()
