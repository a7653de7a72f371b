"""What `crewlet simulate` says of its seeds, and how it is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from crewlet.cli.exits import INTERRUPTED
from crewlet.commit import commit

if TYPE_CHECKING:
    from actors.simulation.faults import Decision
    from crewlet.testing.simulated.campaign import Found, Summary, Task

Decisions: TypeAlias = "Sequence[Decision]"

NAMED_FROM: Final = 10
"""Of fewer seeds most rare events are missing, and their names would hide the rest."""


class Stop:
    """Called: whether somebody asked for the end."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked


@contextmanager
def stoppable() -> Iterator[Stop]:
    """A first SIGINT or SIGTERM is noted, a second one leaves at once. Nothing is raised: in the
    middle of a seed the code that is simulated would catch it."""
    stop = Stop()

    def note(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            os._exit(INTERRUPTED)
        stop.asked = True

    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def row(summary: Summary, found: dict[int, Decisions], task: Task) -> dict[str, Any]:
    """The one object of `-o json`."""
    whole: dict[str, Any] = msgspec.to_builtins(summary)
    for one in whole["violations"]:
        if one["seed"] in found:
            one["decisions"] = [_named(decision) for decision in found[one["seed"]]]
    return {
        **whole,
        "profile": task.profile,
        "minutes": round(task.faults_s / 60.0, 6),
        "commit": commit(),
    }


def _named(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in decision.__struct_fields__}


def sentence(found: Found) -> str:
    """What was broken, where and when."""
    return (
        f"seed {found.seed}, commit {commit()}, profile {found.profile}: {found.invariant} at "
        f"{found.t:.3f} s, step {found.step}: {found.text}"
    )


def again(task: Task) -> str:
    """The command line that plays it once more."""
    profile = "" if task.profile == "swarm" else f" --profile {task.profile}"
    minutes = "" if task.faults_s == 300.0 else f" --minutes {task.faults_s / 60.0:.12g}"
    return f"crewlet simulate --seed {task.seed}{profile}{minutes}"


def fewest(decisions: Decisions) -> str:
    """A line each, under how many they are."""
    from actors.simulation.faults import told

    if not decisions:
        return "  it needs no fault at all\n"
    are = "is" if len(decisions) == 1 else "are"
    lines = [f"    {told(one)}\n" for one in decisions]
    return f"  {counted(len(decisions), 'decision')} {are} enough:\n" + "".join(lines)


def totals(summary: Summary) -> str:
    """Four lines for people."""
    broken = len(summary.violations)
    lines = [
        f"{counted(summary.seeds, 'seed')}, {summary.handoffs} hand-offs, {summary.turns} turns, "
        f"{counted(broken, 'broken promise') if broken else 'no broken promises'}",
        f"{summary.handoffs_per_minute} hand-offs a minute and core, "
        f"{summary.virtual_per_real} virtual seconds a second",
        f"trace hash {summary.trace_hash}",
        _met(summary),
    ]
    return "".join(f"{line}\n" for line in lines)


def _met(summary: Summary) -> str:
    """What did not happen was not shown."""
    every, unseen = len(summary.sometimes), len(summary.unseen)
    met = f"{every - unseen} of {every} rare events were met"
    if not unseen:
        return met if every else "nothing was met"
    if summary.seeds < NAMED_FROM:
        return f"{met}; for the others this run shows nothing"
    return f"{met}; this run shows nothing for {', '.join(summary.unseen)}"


def counted(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
