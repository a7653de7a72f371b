"""The bodies of what is told about revisions of a company."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class ConfigRevisionActivated(Struct, frozen=True, kw_only=True):
    """A revision is the one to work by, for every node; what it changes about seats."""

    actor: str
    revision: int
    digest: str
    summary: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class ConfigRevisionApplied(Struct, frozen=True, kw_only=True):
    """What came of it on the node that the envelope names: it works by it, or `applied` is false,
    `reason` says why, and it goes on with what it had. `tries`: how often it has failed there."""

    revision: int
    digest: str
    applied: bool
    summary: str
    reason: str = ""
    tries: int = 0


class SeatRetired(Struct, frozen=True, kw_only=True):
    """The mailboxes of a seat that the company has not any more are gone, and `mail` messages with
    them. Once for each absence; `absent_since` is when it was first seen."""

    agent_role: str
    absent_since: datetime
    mail: int
    summary: str
