"""What a source makes of a delivery from outside: notifications, or a skip with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Verdict: TypeAlias = Literal["wake", "follow", "lookup", "nothing"]
"""wake: somebody is addressed now. follow: only those already in the conversation may be
woken. lookup: the payload does not name its conversation (and whoever it addresses is woken once
that is known). nothing: nobody is concerned."""


class Notification(Struct, frozen=True, kw_only=True):
    """One readable happening. Names are the vendor's own, exactly as the payload has them.

    `partition_key` is `conversation_identity` or a finer cut of it; both are namespaced by
    source and empty where the payload names no conversation. `addressed` never holds the
    sender; teams stand as `team:NAME`. `subject` is what the conversation is called, empty where
    the payload does not say; `body` always says something. `metadata` values are JSON.

    `lead` says in one sentence what happened, and stands for the body where a later event of the
    partition supersedes it; it is empty where the body keeps its text (a comment, a message).
    `occurrence` is the same for every delivery that tells of one thing (a comment that arrives
    both by itself and as a change of its issue): a seat is woken by it once. Empty where the
    vendor does not say.
    """

    source: str
    event_type: str
    verdict: Verdict
    partition_key: str = ""
    conversation_identity: str = ""
    sender: str = ""
    addressed: tuple[str, ...] = ()
    subject: str = ""
    body: str = ""
    lead: str = ""
    occurrence: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Skip(Struct, frozen=True, kw_only=True):
    """A delivery that could not be read: one of the fixed phrases, and what exactly."""

    source: str
    event_type: str = ""
    reason: str
    detail: str = ""


Parsed: TypeAlias = Notification | Skip
