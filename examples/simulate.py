"""Your company on a fleet on which everything goes wrong, before it is on one in earnest.

    python examples/simulate.py

The handler keeps count of what it did outside. The promise that it breaks is its own: a task is
done once. A node that dies between the effect and its record has the turn run again, and
`simulate` finds when. Tell whoever does the effect the event's id, and it is done once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from crewlet.company import parse_company
from crewlet.testing import simulate
from crewlet.testing.simulation import Answer, Invariant, Promise, Record
from crewlet.turn import Turn

company = parse_company("""
name: Acme
roles:
  - {name: Developer, handle: dev}
  - {name: Reviewer, handle: review}
""")


class Tracker:
    """What stands outside: comments, some of which say which event they are for."""

    def __init__(self, *, knows_ids: bool) -> None:
        self.knows_ids = knows_ids
        self.comments: list[str] = []

    def comment(self, about: str) -> None:
        if not (self.knows_ids and about in self.comments):
            self.comments.append(about)


def made(*, knows_ids: bool) -> tuple[Answer, Mapping[str, Invariant]]:
    """A tracker for each run, a handler that comments there, and what has to be true of it."""
    tracker = Tracker(knows_ids=knows_ids)

    async def handler(turn: Turn) -> str:
        await asyncio.sleep(2.0)  # virtual: it costs nothing
        for event in turn.events:
            tracker.comment(event.id)
        return f"{turn.seat.name} did it"

    def commented_once(record: Record) -> str | None:
        """Asked at every record; `over` is the last."""
        if record.kind == "over" and len(tracker.comments) > len(set(tracker.comments)):
            return "somebody reads the same comment twice"
        return None

    return handler, {"one comment each": commented_once}


def main() -> None:
    try:
        simulate(company, make=lambda: made(knows_ids=False), seeds=range(12), minutes=2)
    except Promise as broken:
        print(str(broken).splitlines()[0])
    report = simulate(company, make=lambda: made(knows_ids=True), seeds=range(12), minutes=2)
    print(f"{report.summary.seeds} seeds, {report.summary.turns} turns, each comment once")
    print("not met, so not shown:", ", ".join(report.summary.unseen) or "nothing")


if __name__ == "__main__":
    main()
