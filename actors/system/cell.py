"""A cell: what the system keeps for one actor, through its restarts and to its end."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.system.address import Address
from actors.system.endpoint import Tomb
from actors.system.messages import Snapshot

if TYPE_CHECKING:
    from actors.system.base import AsyncioSystemBase
    from actors.system.token import Watch


class State(enum.Enum):
    """Where an actor is in its life. Mail is handled in RUNNING only."""

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    RESTARTING = "restarting"
    WAITING = "waiting"
    STOPPING = "stopping"
    GONE = "gone"


class Cell:
    """Mailbox, place in the tree, and the order of the end. Subclasses run messages.

    The mailbox is two lists: `inbox` is appended to, `batch` is an earlier inbox turned
    around and popped from its end. A deque would cost 600 bytes an idle actor.
    """

    __slots__ = (
        "address",
        "base",
        "batch",
        "children",
        "inbox",
        "name",
        "on_gone",
        "open",
        "parent",
        "reason",
        "scheduled",
        "state",
        "watchers",
    )

    def __init__(self, base: AsyncioSystemBase, parent: Cell | None, label: str, name: str) -> None:
        self.base = base
        self.parent = parent
        self.name = name
        self.address: Address = base.new_address(label)
        self.address.endpoint = self
        self.inbox: list[tuple[object, Address]] = []
        self.batch: list[tuple[object, Address]] = []
        self.children: dict[Address, Cell] | None = None
        self.watchers: dict[Watch, None] | None = None
        self.on_gone: list[Callable[[], None]] | None = None
        self.scheduled = False
        self.open = False
        self.state = State.STARTING
        self.reason = ""

    # -- mail

    def push(self, message: object, sender: Address) -> None:
        """Take a message, or call it a dead letter when the mailbox is full."""
        raise NotImplementedError

    def enqueue(self, message: object, sender: Address) -> None:
        """Queue what must not get lost: no bound."""
        self.inbox.append((message, sender))
        if not self.scheduled and self.open:
            self.schedule()

    def schedule(self) -> None:
        self.scheduled = True
        base = self.base
        base.ready.append(self)
        if not base.armed:
            base.arm()

    def turn(self) -> None:
        """Handle some messages; called by the dispatcher while `scheduled`."""
        raise NotImplementedError

    @property
    def depth(self) -> int:
        """Messages that wait."""
        return len(self.inbox) + len(self.batch)

    def next_envelope(self) -> tuple[object, Address] | None:
        """Take the oldest message out."""
        if not self.batch:
            if not self.inbox:
                return None
            self.batch, self.inbox = self.inbox, self.batch
            self.batch.reverse()
        return self.batch.pop()

    def run(self) -> None:
        """Begin, or go on, to handle mail."""
        self.state = State.RUNNING
        self.open = True
        if not self.scheduled and (self.inbox or self.batch):
            self.schedule()

    # -- the tree

    def adopt(self, child: Cell) -> None:
        if self.children is None:
            self.children = {}
        self.children[child.address] = child

    def disown(self, child: Cell) -> None:
        """A child is gone: go on with an end that waited for it."""
        if self.children is not None:
            self.children.pop(child.address, None)
        self.settle()

    def watched_by(self, watch: Watch) -> None:
        if self.watchers is None:
            self.watchers = {}
        self.watchers[watch] = None

    def unwatched_by(self, watch: Watch) -> None:
        if self.watchers is not None:
            self.watchers.pop(watch, None)

    # -- the end

    def stop(self, reason: str) -> None:
        """End this actor: its children first. Idempotent; system work, never inside a turn."""
        if self.state is State.STOPPING or self.state is State.GONE:
            return
        tearing = self.state is State.RESTARTING
        self.state = State.STOPPING
        self.open = False
        self.reason = reason
        if not tearing:
            self.tear_down()

    def tear_down(self) -> None:
        """Take this incarnation apart; `settle` finishes when children and effects are gone."""
        self.withdraw()
        if self.children:
            for child in list(self.children.values()):
                child.stop("parent")
        self.settle()

    def withdraw(self) -> None:
        """Withdraw timers and watches of this incarnation."""

    def at_rest(self) -> bool:
        """Whether nothing of this incarnation runs any more."""
        return True

    def settle(self) -> None:
        """One step of an end: called again whenever something it waits for is gone."""
        if self.state is not State.STOPPING and self.state is not State.RESTARTING:
            return
        if self.children or not self.at_rest():
            return
        self.close()
        if self.state is State.STOPPING:
            self.bury()

    def close(self) -> None:
        """Let go of the instance."""

    def bury(self) -> None:
        """The end. From here on the address is a tomb; whoever waited for it hears."""
        self.state = State.GONE
        base, address = self.base, self.address
        tomb = Tomb(base, address, self.reason)
        address.endpoint = tomb
        while (envelope := self.next_envelope()) is not None:
            self.bury_mail(*envelope)
        for watch in self.watchers or ():
            watch.gone(self.reason)
        self.watchers = None
        parent = self.parent
        base.forget(self)
        if parent is not None:
            parent.child_gone(self)
        for call in self.on_gone or ():
            call()
        self.on_gone = None

    def bury_mail(self, message: object, sender: Address) -> None:
        self.base.dead_letter(self.address, message, sender, "stopped")

    def child_gone(self, child: Cell) -> None:
        """A child is buried."""
        self.disown(child)

    def child_escalated(self, reason: str) -> None:
        """A child's supervision hands its failure up. Without supervision: only the child goes."""

    # -- figures

    @property
    def kind(self) -> str:
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        restarts, effects, timers = self.figures()
        return Snapshot(
            name=self.name,
            address=str(self.address),
            kind=self.kind,
            state=self.state.value,
            depth=self.depth,
            restarts=restarts,
            effects=effects,
            timers=timers,
            children=tuple(child.snapshot() for child in (self.children or {}).values()),
        )

    def figures(self) -> tuple[int, int, int]:
        """Restarts, effects at work, timers set."""
        return 0, 0, 0
