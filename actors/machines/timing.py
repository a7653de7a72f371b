"""The numbers of leases, which only make sense together."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final

from msgspec import Struct

LONGEST_TTL_S: Final = 3600.0
"""What a row says beyond this is not believed: nobody waits longer for a session to lapse."""


class Timing(Struct, frozen=True, kw_only=True):
    """Seconds. `ttl_s`: how long a session that nobody sees renewed is left alone. `renew_s`:
    between renewals. `margin_s`: what the holder deducts for clocks that run apart and for
    answers under way. `confirm_s`: a new turn needs a renewal sent within this. `sweep_s`: how
    often the whole is looked at, whatever was heard. `stand_back_s`: how long a seat that is
    meant for another node is left to it.

    Sources: decisions.md 2 and 3 (20, 5, 3, 6, 5); a broker's election takes up to 11.4 s
    (reliability.md 0.9), which ttl - margin outlasts.
    """

    ttl_s: float = 20.0
    renew_s: float = 5.0
    margin_s: float = 3.0
    confirm_s: float = 6.0
    sweep_s: float = 5.0
    stand_back_s: float = 2.0

    @property
    def valid_s(self) -> float:
        """How long a holder may act on a renewal, from when it was sent."""
        return self.ttl_s - self.margin_s

    def __post_init__(self) -> None:
        numbers = (self.ttl_s, self.renew_s, self.margin_s, self.sweep_s, self.stand_back_s)
        if not all(0 < number <= LONGEST_TTL_S for number in numbers):
            raise ValueError(
                f"the numbers of a lease are above zero, and at most {LONGEST_TTL_S:g} s"
            )
        if not self.renew_s < self.confirm_s <= self.valid_s:
            raise ValueError(
                f"renew_s {self.renew_s:g} < confirm_s {self.confirm_s:g} <= ttl_s - margin_s "
                f"{self.valid_s:g} does not hold"
            )
        if 2 * self.renew_s >= self.valid_s:
            raise ValueError(
                f"ttl_s - margin_s is {self.valid_s:g}: it must outlast two renewals of "
                f"{self.renew_s:g} s, or one that is lost ends the session"
            )


TTL: Final = "ttl"
"""In the row of a session: its holder's TTL. Who waits for a session to lapse waits for the longer
of that and its own, so that nodes of different settings end nobody too early."""


def patience_s(about: Mapping[str, str], own_ttl_s: float) -> float:
    """How long a session that says this of itself must have been silent."""
    try:
        stated = float(about.get(TTL, "0"))
    except ValueError:
        stated = 0.0
    return max(own_ttl_s, min(stated, LONGEST_TTL_S)) if isfinite(stated) else own_ttl_s


def scaled(
    ttl_s: float | None = None, renew_s: float | None = None, margin_s: float | None = None
) -> Timing:
    """The defaults, in the proportions of another TTL; `confirm_s` in that of `renew_s`."""
    default = Timing()
    ttl_s = default.ttl_s if ttl_s is None else ttl_s
    by = ttl_s / default.ttl_s
    renew_s = default.renew_s * by if renew_s is None else renew_s
    return Timing(
        ttl_s=ttl_s,
        renew_s=renew_s,
        margin_s=default.margin_s * by if margin_s is None else margin_s,
        confirm_s=renew_s * default.confirm_s / default.renew_s,
        sweep_s=default.sweep_s * by,
        stand_back_s=default.stand_back_s * by,
    )
