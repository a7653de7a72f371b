"""Which company a node starts with: that of its file, or the active revision of the store."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from crewlet.company import Company
from crewlet.errors import NodeRefused
from crewlet.revisions.revision import Revision, digest_of

Start: TypeAlias = Literal["file", "apply", "active"]
"""By the file as it is; by the file, which becomes the active revision; by the active revision."""


def at_start(
    own: Company, active: Revision | None, past: Collection[str], *, alone: bool, forced: bool
) -> Start:
    """`past` are the digests of revisions before the active one; `alone`: nobody else can reach the
    store; `forced`: a person said that the file is to be applied. NodeRefused where the store is
    another company's.

    A file that has been a revision is older than the active one. One that never was may have been
    edited since: on a node that is alone nobody but that person can have meant anything else, in a
    fleet it may just as well be a host that was forgotten, and is not allowed to decide for all.
    """
    if active is None:
        return "apply" if own.source_text else "file"
    if own.name != active.company:
        raise NodeRefused(
            f"this is where the company {active.company!r} lives, with its mail; {own.name!r} "
            "would mix with it: give it a data folder (`--data DIR`) or a broker of its own"
        )
    if not own.source_text:
        return "active"
    digest = digest_of(own.source_text)
    if digest == active.digest:
        return "file"
    edited = alone and digest not in past
    return "apply" if forced or edited else "active"
