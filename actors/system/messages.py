"""What the system itself says to an actor, and about one."""

from __future__ import annotations

from msgspec import Struct

from actors.system.address import Address


class EffectEnded(Struct, frozen=True):
    """The coroutine begun with `effect(coroutine, tag)` is over.

    `error` is what it raised, a `CancelledError` if it was cancelled, None if it returned
    `value`. Only the incarnation that began the effect hears of it.
    """

    tag: object
    value: object = None
    error: BaseException | None = None


class Terminated(Struct, frozen=True):
    """A watched actor is gone for good; all that it sent before is ahead of this message."""

    address: Address
    reason: str


class ChildFailed(Struct, frozen=True):
    """A child's handler raised. `action` is what its supervision does about it: restart,
    resume, stop or escalate. Sent to a parent that handles it, and to no other; an escalation
    that ends the parent's incarnation is not heard by the next."""

    child: Address
    name: str
    reason: str
    action: str


class DeadLetter(Struct, frozen=True):
    """A message that nobody handled. `reason`: gone, full, stopped, unhandled, no_actor."""

    address: Address
    message: object
    sender: Address
    reason: str


class Snapshot(Struct, frozen=True):
    """One actor as the admin shell shows it. `depth` counts the messages that wait."""

    name: str
    address: str
    kind: str
    state: str
    depth: int
    restarts: int
    effects: int
    timers: int
    children: tuple[Snapshot, ...] = ()
