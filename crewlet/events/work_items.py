"""What the time and the money of a turn are charged to: an issue, a merge request, a work item."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Basis: TypeAlias = Literal["trigger", "asked_by", "resume"]
"""The rule that named it. trigger: what woke the turn is of its conversation. asked_by: the channel
of a question between colleagues carries that of the asking turn. resume: the run that is over
began in a turn that was charged to it. What a turn wrote while it ran names none here: handlers
write outside, where the engine sees nothing of it."""


class WorkItem(Struct, frozen=True, kw_only=True):
    """`id` names it within its backend, the same whichever of its deliveries one reads; `key` is
    what people call it (`POC-7`, `octo/rocket#12`), empty where a delivery has only the id."""

    backend: str
    id: str
    key: str = ""
    project: str = ""

    def __str__(self) -> str:
        return f"{self.backend} {self.key or self.id}"
