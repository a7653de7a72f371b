"""What a simulated fleet needs from outside: a broker with a way into it, and a program."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from actors.simulation.checkers import Audit
from actors.simulation.host import Host, Office


class Posting(Struct, frozen=True):
    """A message of the workload. `stamp` is its timestamp, `flavour` what becomes of its turn:
    empty, `poison` (its handler always raises), or `corrupt` (nobody can read it)."""

    seat: str
    msg: str
    key: str
    stamp: float
    flavour: str = ""


class Site(Protocol):
    """The broker's side of the world, and what a node's process runs.

    Everything but `program` happens on the world's loop and is not stopped by any fault that
    befalls a node.
    """

    @property
    def seats(self) -> Sequence[str]:
        """The handles, in order."""

    async def prepare(self) -> None:
        """Make the mailboxes."""

    def ensure(self, seat: str) -> None:
        """Have its mailboxes there, whether or not they are; written down."""

    def delete(self, seat: str) -> bool:
        """Destroy its inbox and what is in it, whether or not anybody is attached; written down.
        False: there is none."""

    def join(self, host: Host) -> Office:
        """A client for the host's new process."""

    def program(self, host: Host) -> Coroutine[Any, Any, None]:
        """What the process runs: it starts the host's `runtime`, over the host's `wire`."""

    async def publish(self, posting: Posting) -> tuple[int, bool]:
        """Where it is stored, and whether it was there already; Unavailable while the broker
        does not answer."""

    async def command(self, seat: str, msg: str) -> None:
        """Publish to the seat's control mailbox; written down. What it may answer, `publish`
        says."""

    async def publish_nowhere(self, msg: str) -> bool:
        """Publish to a seat that has no mailbox; True where whoever publishes is told."""

    def down(self, *, down: bool) -> None:
        """The broker does not answer, or does again."""

    def restart(self) -> None:
        """The broker was killed, and is back on what it had stored."""

    def old_leader(self, *, on: bool) -> None:
        """From now on, reads of nodes at an old leader see the store as it is now."""

    def redeliver(self, seat: str, chance: Random) -> bool:
        """An ack window ends: somebody's message is handed out again. False: nothing is out."""

    def wipe(self) -> None:
        """Somebody deletes the bucket of leases."""

    def out(self) -> Iterable[tuple[str, int]]:
        """What the broker believes to be in somebody's hands, by seat and position."""

    def left(self, seat: str) -> Sequence[int]:
        """The positions of the seat's mail that is still there, handed out or not."""

    def patience_s(self) -> float:
        """How long what is left may take beyond the time of the drills: where turns are long,
        their number times that."""

    def calm(self) -> None:
        """Handlers behave from now on."""

    def audit(self) -> Audit:
        """Everything that is left."""
