"""A case of the queue's suite, and the table that a file of cases is collected in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.harness import QueueHarness

Run: TypeAlias = Callable[[Bench], Awaitable[None]]
Need: TypeAlias = Literal["outage", "virtual_time"]
"""What a case asks of its harness: a broker that can be cut off and come back, or time that
passes without waiting."""


class QueueCase(Struct, frozen=True):
    """`lines` are those of docs/contract.md that the case certifies."""

    name: str
    lines: tuple[int, ...]
    play: Run
    needs: Need | None = None

    async def run(self, harness: QueueHarness) -> None:
        """It passes if this returns. Every queue that the case opened is stopped then."""
        bench = Bench(harness)
        try:
            await self.play(bench)
        finally:
            await bench.close()


class Table:
    """The cases of one file, in the order they are written."""

    def __init__(self) -> None:
        self._cases: list[QueueCase] = []

    def __iter__(self) -> Iterator[QueueCase]:
        return iter(self._cases)

    def case(self, *lines: int, needs: Need | None = None) -> Callable[[Run], Run]:
        """Collect a coroutine function under its own name."""

        def collect(play: Run) -> Run:
            self._cases.append(QueueCase(play.__name__, lines, play, needs))
            return play

        return collect
