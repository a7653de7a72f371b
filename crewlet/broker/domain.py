"""How what we say to JetStream is addressed from a server that runs none: over its domain.

What a leaf publishes to `$JS.API.>` and `$KV.>` does not leave it: servers deny these between two
that may each have a JetStream. The members carry theirs under the name of a domain as well, and
that passes; there the name is taken off again, so that a stream keeps the subject it always had.
Receipts (`$JS.ACK.>`), topics and questions pass as they are (nats-server 2.15.1: measured).
"""

from __future__ import annotations

from typing import Final

DOMAIN: Final = "crewlet"
"""Of the members that take leaves."""

_API: Final = "$JS.API."
_ROWS: Final = "$KV."


def addressed(subject: str, domain: str) -> str:
    """The subject that reaches a JetStream of this domain; itself without one."""
    if not domain or subject[0] != "$":
        return subject
    if subject.startswith(_API):
        return f"$JS.{domain}.API.{subject[len(_API) :]}"
    return f"$JS.{domain}.API.{subject}" if subject.startswith(_ROWS) else subject
