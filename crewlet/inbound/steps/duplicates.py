"""At least once means that one event may lie in a partition twice; it is one constituent."""

from __future__ import annotations

from actors.delivery import Letter
from crewlet.inbound.work import Work


async def drop_duplicates(work: Work) -> None:
    """The first of each id stays."""
    first: dict[str, Letter] = {}
    for letter in work.letters:
        first.setdefault(letter.id, letter)
    work.letters = tuple(first.values())
