"""Why turns of an embedder's handler failed, for whoever reads why something was broken."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from typing import Final

from crewlet.errors import AskRefused
from crewlet.handlers.outcomes import raised

KINDS: Final = 100
"""So many different ones are told apart; a text with a number in it may be another each time."""

FRAMES: Final = 4
SHOWN: Final = 5


class Failures:
    """Why turns of one run failed, and how often; `raised` is where first something was raised."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.raised = ""

    def failed(self, reason: str) -> None:
        """A turn came to nothing."""
        if reason not in self.counts and len(self.counts) >= KINDS:
            reason = "others"
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def let_out(self, error: BaseException) -> None:
        """The handler raised. A question that was refused ends its turn as if it were answered."""
        if isinstance(error, AskRefused):
            self.failed(raised(error).reason)
        if not self.raised:
            self.raised = "".join(traceback.format_exception(error, limit=-FRAMES)).rstrip()

    @property
    def lines(self) -> list[str]:
        """For a text: nothing where nothing failed."""
        told = [f"turns failed, {count} times: {text}" for text, count in self.counts.items()]
        return [*told[:SHOWN], *([self.raised] if self.raised else [])]


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Both counts together."""
    return {text: one.get(text, 0) + other.get(text, 0) for text in {**one, **other}}


def missing(error: BaseException) -> str:
    """What of the loop was asked for that no simulated process has; empty where it was not that."""
    if not isinstance(error, NotImplementedError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    inside = bool(frames) and frames[-1].filename == asyncio.events.__file__
    return frames[-1].name if inside else ""
