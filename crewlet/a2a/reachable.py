"""Whom a seat may ask, those first with whom it shares most: a pure answer of the company."""

from __future__ import annotations

from itertools import takewhile

from crewlet.company import Company, Seat


def reachable(company: Company, handle: str) -> list[Seat]:
    """The other agents: of its own unit, then of the units around that, then all; those equally
    near as the file has them."""
    mine = company.seat(handle)
    path = () if mine is None else mine.unit_path
    others = [seat for seat in company.agents() if seat.handle != handle]
    return sorted(others, key=lambda seat: -_shared(path, seat.unit_path))


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many units, from the outside in, both are in."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
