"""Whether it is the provider that is away, or one message that it chokes on (docs/adr/0019).

A provider that answers 5xx to whatever it is sent, and one that does so for this message alone,
look the same from within one turn. What tells them apart is what became of others meanwhile.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

PROVEN: Final = 3
"""Failures of one message, before each of which the provider had worked for somebody else since
the last. A provider that comes and goes does that to few, and a wrong word costs one delivery."""

PATIENCE: Final = 10
"""Failures in a row of one message of a seat that nobody else bears witness to; the tenth is three
quarters of an hour after the first. Then the seat's other mail is tried before it."""

MOST: Final = 100
"""Messages under suspicion that are remembered for a seat."""

Blame: TypeAlias = Literal["provider", "message", "unclear"]
"""`unclear`: let others of the seat show it."""


class Suspect(Struct, frozen=True):
    """A message that failed `failures` times in a row, `proven` of them as PROVEN has it, and last
    at `at` (monotonic seconds). `fresh`: the last one was of those."""

    failures: int
    proven: int
    at: float
    fresh: bool = False


def failed_again(known: Suspect | None, *, at: float, worked_at: float | None) -> Suspect:
    """It failed at `at`; the provider had last worked for anybody at `worked_at`."""
    if known is None:
        return Suspect(1, 0, at)
    fresh = worked_at is not None and worked_at > known.at
    return Suspect(known.failures + 1, known.proven + fresh, at, fresh)


def blame(suspect: Suspect) -> Blame:
    """For its last failure. A message that was proven is not to blame for a later outage."""
    if suspect.fresh and suspect.proven >= PROVEN:
        return "message"
    return "unclear" if suspect.failures % PATIENCE == 0 else "provider"


class Suspicions:
    """Of the seats of one node. `provider` is a name that handlers of several seats may share;
    empty: a seat's handler is known to no other."""

    def __init__(self) -> None:
        self._suspects: dict[str, dict[str, Suspect]] = {}
        self._worked: dict[str, float] = {}

    def failed(self, handle: str, provider: str, message: str, at: float) -> Blame:
        """The handler of a seat could not work a message."""
        suspects = self._suspects.setdefault(handle, {})
        worked_at = self._worked.get(provider or f"seat:{handle}")
        suspect = failed_again(suspects.pop(message, None), at=at, worked_at=worked_at)
        suspects[message] = suspect  # the one that failed last stands last
        if len(suspects) > MOST:
            del suspects[next(iter(suspects))]
        return blame(suspect)

    def worked(self, handle: str, provider: str, messages: tuple[str, ...], at: float) -> None:
        """It could, and they are under no suspicion any more."""
        self._worked[provider or f"seat:{handle}"] = at
        suspects = self._suspects.get(handle)
        if suspects:
            for message in messages:
                suspects.pop(message, None)

    def forget(self, handle: str) -> None:
        """The seat comes anew."""
        self._suspects.pop(handle, None)

    def clear(self) -> None:
        """Any handler may be another one."""
        self._suspects.clear()
        self._worked.clear()
