"""A case of a suite, and the table that a file of cases is collected in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from crewlet.testing.conformance.harness import Harness

Run: TypeAlias = Callable[[Harness], Awaitable[None]]
Need: TypeAlias = Literal["restart", "virtual_time"]
"""What a case asks of its harness: a broker that can be restarted with its storage, or
time that passes without waiting."""


class Case(Struct, frozen=True):
    """`lines` are those of docs/contract.md that the case certifies. It passes if `run`
    returns; every negative in it stands beside a positive control."""

    name: str
    lines: tuple[int, ...]
    run: Run
    needs: Need | None = None


class Table:
    """The cases of one file, in the order they are written."""

    def __init__(self) -> None:
        self._cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def case(self, *lines: int, needs: Need | None = None) -> Callable[[Run], Run]:
        """Collect a coroutine function under its own name."""

        def collect(run: Run) -> Run:
            self._cases.append(Case(run.__name__, lines, run, needs))
            return run

        return collect
