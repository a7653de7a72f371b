"""Draw a node's session into docs/reference/session.md, by walking it.

`python -m tests.docs.draw_session` writes the page; a test holds it to the code. Time is walked
as well: a wake comes when it was asked for, and an answer at once, after the confirmation has
lapsed, or after the session has.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from pathlib import Path

from msgspec.structs import replace

from actors.machines import lease as m
from actors.machines.lease import SessionMachine, State
from actors.machines.timing import Timing
from actors.tenure import Lease
from tests.docs.states import Found, Walk, diagram, tables

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "session.md"
TIMING = Timing()
OTHER = Lease(resource="node:n", owner="n:other", node="n", epoch=50, session=50, revision=500)
LATER = {"": 0.0, " late": TIMING.confirm_s + 0.1, " too late": TIMING.valid_s + 0.1}


class Node:
    """A machine, its clock, and what it waits for."""

    def __init__(self) -> None:
        self.machine = SessionMachine("n", "n:me", TIMING)
        self.now = 0.0
        self.wake = float("inf")
        self.asked: m.Effect | None = None
        self.sent = 0.0
        self.begun = False

    def step(self, given: m.Input, now: float) -> list[m.Effect]:
        self.now = now
        effects = self.machine.step(given, now)
        self.wake = float("inf")
        if isinstance(given, m.Looked | m.Written | m.Refused | m.Unanswered):
            self.asked = None
        for effect in effects:
            match effect:
                case m.Wake(at=at):
                    self.wake = at
                case m.Look() | m.Write():
                    assert self.asked is None
                    self.asked, self.sent = effect, now
        return effects


def inputs(node: Node) -> Iterator[tuple[str, m.Input, float]]:
    """What the world may do now: a name, the input, and when."""
    now = node.now
    if not node.begun:
        yield "begin", m.Begin({}), now
    yield "about", m.About({"word": "new"}), now
    yield "leave", m.Leave(), now
    if node.machine.state is State.LEFT:
        yield "woken", m.Woken(), now
    elif node.wake < float("inf"):
        yield "woken", m.Woken(), max(now, node.wake)
    match node.asked:
        case m.Look():
            yield from looks(node)
        case m.Write(lease=lease):
            row = replace(lease, revision=lease.revision + 1)
            for word, after in LATER.items():
                yield f"written{word}", m.Written(row, node.sent), max(now, node.sent + after)
            yield "refused", m.Refused(), now
    if node.asked is not None:
        yield "unanswered", m.Unanswered(), now


def looks(node: Node) -> Iterator[tuple[str, m.Input, float]]:
    now, machine = node.now, node.machine
    own = replace(OTHER, owner="n:me", epoch=max(1, machine.epoch))
    yield "looked: no row", m.Looked(None), now
    yield "looked: ours", m.Looked(own), now
    yield "looked: released", m.Looked(replace(OTHER, released=True)), now
    yield "looked: another's", m.Looked(OTHER), now
    if machine._seen is not None:
        yield "looked: another's, renewed", m.Looked(replace(OTHER, revision=501)), now
        silent = now + TIMING.ttl_s
        yield "looked: another's, silent for a TTL", m.Looked(OTHER), silent


def moves(node: Node) -> Iterator[tuple[str, Node, list[str]]]:
    for name, given, now in inputs(node):
        after = copy.deepcopy(node)
        after.begun |= isinstance(given, m.Begin)
        effects = after.step(given, now)
        yield name, after, [word(effect) for effect in effects if not isinstance(effect, m.Wake)]


def situation(node: Node) -> Hashable:
    machine, now = node.machine, node.now
    return (
        machine.state,
        type(node.asked),
        node.begun,
        machine.doubted,
        machine._stale_about,
        machine._leaving,
        machine._seen is not None,
        machine.state is State.HELD and now >= machine._next,
        node.wake < float("inf"),
    )


def word(effect: m.Effect) -> str:
    match effect:
        case m.Write(lease=lease):
            return "write(released)" if lease.released else "write"
        case m.Renewed(again=True):
            return "renewed(again)"
        case m.Ended(reason=reason):
            return f"ended({reason})"
    return type(effect).__name__.lower()


def walk() -> Found:
    return Walk(Node(), moves, situation, lambda node: str(node.machine.state.value), 60).found


def page() -> str:
    found = walk()
    return "\n".join(
        [
            "# A node's session, in states",
            "",
            "Drawn from the machine by `python -m tests.docs.draw_session`; a test holds this",
            "page to the code ([ADR 9](../adr/0009-sessions-and-tenures.md)). One `look` or",
            "`write` is under way at a time; an answer is `late` after the confirmation (6 s from",
            "its sending) and `too late` after the validity (17 s). Each state but the last also",
            "sets the time of its next wake. A doubted session is `held`: nothing starts under it,",
            "and everything is kept.",
            "",
            *diagram(found, State.OUT.value, State.LEFT.value),
            "",
            "What an input can lead to, and what is done then:",
            "",
            *tables(found, [state.value for state in State]),
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
