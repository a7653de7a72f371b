"""Draw the hand-off of a seat into docs/reference/handoff.md, by walking it.

`python -m tests.docs.draw_handoff` writes the page; a test holds it to the code.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Hashable, Iterator
from pathlib import Path

from actors.machines import handoff as h
from actors.machines.handoff import ALARM_BEATS, Handoff, State
from actors.machines.signals import IllegalInput
from actors.tenure import Lease
from tests.docs.states import Found, Walk, diagram, tables

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "handoff.md"
ROW = Lease(resource="seat:s", owner="a:1", node="a", epoch=2, session=1, revision=7)

INPUTS: list[tuple[str, h.Input]] = [
    ("take", h.Take(None, died=False)),
    ("take: its holder died", h.Take(ROW, died=True)),
    ("claimed", h.Claimed(ROW)),
    ("not claimed", h.NotClaimed()),
    ("established", h.Established()),
    ("not established", h.NotEstablished()),
    ("give up", h.GiveUp("why", "b")),
    ("empty", h.Empty()),
    ("not empty", h.NotEmpty()),
    ("renewal", h.Beat()),
    ("fence", h.Fence("why")),
    ("forsaken", h.Forsaken()),
    ("released", h.Released()),
    ("not released", h.NotReleased()),
]


def moves(machine: Handoff) -> Iterator[tuple[str, Handoff, list[str]]]:
    for name, given in INPUTS:
        after = copy.deepcopy(machine)
        try:
            effects = after.step(given)
        except IllegalInput:
            continue
        yield name, after, [word(effect) for effect in effects]


def situation(machine: Handoff) -> Hashable:
    return (
        machine.state,
        machine._reclaim,
        machine._given_up is not None,
        machine._writing,
        machine.was_held,
        machine.beats % ALARM_BEATS,
    )


def word(effect: h.Effect) -> str:
    name = re.sub(r"(?<=.)([A-Z])", r"-\1", type(effect).__name__).lower()
    match effect:
        case h.Establish(reclaim=True):
            return f"{name}(reclaim)"
        case h.WriteRelease(mail_out=True):
            return f"{name}(mail out)"
        case h.Gone(voluntary=voluntary):
            return f"{name}({'in order' if voluntary else 'lost'})"
    return name


def walk() -> Found:
    return Walk(Handoff(), moves, situation, lambda machine: str(machine.state.value), 60).found


def page() -> str:
    found = walk()
    return "\n".join(
        [
            "# The hand-off of a seat, in states",
            "",
            "Drawn from the machine by `python -m tests.docs.draw_handoff`; a test holds this",
            "page to the code. One machine for each seat that a node is about to have, has, or is",
            "letting go of ([ADR 9](../adr/0009-sessions-and-tenures.md)). An input that is not in",
            "a state's table is refused there and changes nothing. `gone(in order)` is a seat that",
            "was given up, `gone(lost)` one that was fenced or never had; `mail out`: what a dead",
            "holder had in flight is still out.",
            "",
            *diagram(found, State.FREE.value),
            "",
            "What an input can lead to, and what is done then:",
            "",
            *tables(found, [state.value for state in State]),
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
