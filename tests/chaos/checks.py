"""The set algebra of a run: what became of every message, judged from what was recorded outside.

Pure: everything it is given was heard at the broker or read from the recorders' files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field


class LeaseRow(Struct, frozen=True):
    """A row of a seat as it was written. `wall`: when the server stored it."""

    seat: str
    sequence: int
    epoch: int
    node: str
    owner: str
    released: bool
    wall: float


class Completed(Struct, frozen=True):
    """A row of the ledger. `fence`: the revision that its writer showed, 0 for none."""

    key: str
    sequence: int
    fence: int
    node: str
    turn: str


class Recorded(Struct):
    """What was heard during a run. `sent`: message id by ledger key; `worked`: how often an
    agent_turn_completed with the outcome ack named a message; `dead` likewise for dead letters;
    `unheard`: how many rows of the log were gone before they could be heard."""

    sent: dict[str, str] = field(default_factory=dict)
    seat_rows: list[LeaseRow] = field(default_factory=list)
    completed: list[Completed] = field(default_factory=list)
    worked: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)


class Turn(Struct):
    """One start in a recorder's file. `ended` is the end, the cut, or the end of its process;
    0 where none of them came."""

    node: str
    incarnation: str
    seat: str
    turn: str
    keys: tuple[str, ...]
    attempt: int
    began: float
    wall: float
    ended: float = 0.0
    how: str = "open"


class Verdicts(Struct):
    """`lost`: acknowledged to the publisher, and neither worked nor a dead letter. `doubled`:
    completed more than once. `unexpected`: completed, and never sent. `stale`: accepted under a
    fence that was not the seat's at that place of the log. `both`: overlapping turns of a seat
    that were both completed. `zombies`: turns that ran beside another and came to nothing.
    `again`: messages that were started more than once."""

    sent: int = 0
    completed: int = 0
    dead: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    zombies: int = 0
    again: int = 0
    by_node: dict[str, int] = field(default_factory=dict)

    @property
    def faults(self) -> dict[str, list[str]]:
        """What may not be; empty in a good run."""
        found = {
            "lost": self.lost,
            "doubled": self.doubled,
            "unexpected": self.unexpected,
            "stale": self.stale,
            "both": self.both,
        }
        return {name: which for name, which in found.items() if which}


def ledger_key(seat: str, message_id: str) -> str:
    """How the ledger names a message: the harness's own words for it, so that a change shows."""
    return f"{seat}.{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def turns_of(lines: Sequence[Mapping[str, Any]], died: Mapping[str, float]) -> list[Turn]:
    """The turns of one file; one that has no end ended with its process (`died`, by
    incarnation)."""
    turns: list[Turn] = []
    running: dict[tuple[str, str], Turn] = {}
    for line in lines:
        at = (line["incarnation"], line["turn"])
        if line["kind"] == "start":
            turn = Turn(
                node=line["node"],
                incarnation=line["incarnation"],
                seat=line["seat"],
                turn=line["turn"],
                keys=tuple(line["keys"]),
                attempt=line["attempt"],
                began=line["at"],
                wall=line["wall"],
            )
            running[at] = turn
            turns.append(turn)
        elif (turn := running.pop(at, None)) is not None:  # type: ignore[assignment]
            turn.ended, turn.how = line["at"], line["kind"]
    for turn in running.values():
        turn.ended = died.get(turn.incarnation, 0.0)
        turn.how = "died" if turn.ended else "open"
    return turns


def judge(recorded: Recorded, turns: Sequence[Turn]) -> Verdicts:
    """All of it."""
    rows = Counter(row.key for row in recorded.completed)
    unknown = [row.key for row in recorded.completed if row.key not in recorded.sent]
    done = {recorded.sent[key] for key in rows if key in recorded.sent}
    starts = Counter(key for turn in turns for key in turn.keys)
    both, zombies = overlapping(turns, {row.turn for row in recorded.completed})
    twice = {id for id, n in recorded.worked.items() if n > 1}
    twice |= {recorded.sent.get(key, key) for key, n in rows.items() if n > 1}
    twice |= {id for id, n in recorded.dead.items() if n > 1}
    sent = set(recorded.sent.values())
    return Verdicts(
        sent=len(sent),
        completed=len(done),
        dead=len(recorded.dead),
        lost=sorted(sent - done - set(recorded.dead)),
        doubled=sorted(twice),
        unexpected=sorted({*unknown, *(recorded.worked.keys() - sent)}),
        stale=stale(recorded.seat_rows, recorded.completed),
        both=both,
        zombies=zombies,
        again=sum(1 for n in starts.values() if n > 1),
        by_node=dict(Counter(row.node for row in recorded.completed)),
    )


def stale(seat_rows: Sequence[LeaseRow], completed: Sequence[Completed]) -> list[str]:
    """Completions that stand in the log although their fence was not the seat's last row."""
    last: dict[str, LeaseRow] = {}
    found = []
    log: list[LeaseRow | Completed] = [*seat_rows, *completed]
    for row in sorted(log, key=lambda one: one.sequence):
        if isinstance(row, LeaseRow):
            last[row.seat] = row
            continue
        seat = row.key.partition(".")[0]
        holder = last.get(seat)
        if holder is None or row.fence != holder.sequence or holder.released:
            found.append(f"{row.key} at {row.sequence} under {row.fence}, not {holder}")
    return found


def overlapping(turns: Sequence[Turn], completed: set[str]) -> tuple[list[str], int]:
    """Pairs of turns of one seat that ran at the same time and were both completed; and how many
    turns ran beside others and came to nothing."""
    both: list[str] = []
    zombies: set[str] = set()
    by_seat: dict[str, list[Turn]] = {}
    for turn in turns:
        by_seat.setdefault(turn.seat, []).append(turn)
    for seat, its in by_seat.items():
        its.sort(key=lambda turn: turn.began)
        running: list[Turn] = []
        for turn in its:
            running = [one for one in running if not one.ended or one.ended > turn.began]
            for one in running:
                if one.turn in completed and turn.turn in completed:
                    both.append(f"{seat}: {one.turn} on {one.node}, {turn.turn} on {turn.node}")
                else:
                    zombies |= {one.turn, turn.turn} - completed
            running.append(turn)
    return both, len(zombies)


def ownerless(rows: Sequence[LeaseRow]) -> list[float]:
    """How long each seat was nobody's, from a release to the claim that follows it."""
    released: dict[str, float] = {}
    gaps = []
    for row in rows:
        if row.released:
            released.setdefault(row.seat, row.wall)
        elif row.seat in released:
            gaps.append(row.wall - released.pop(row.seat))
    return gaps


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and the largest; empty for none."""
    if not values:
        return {}
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"n": len(ordered), "p50": at(0.5), "p99": at(0.99), "max": ordered[-1]}
