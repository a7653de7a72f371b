"""Every subject, and nowhere else.

A producer and a consumer that disagree about a subject raise nothing anywhere: the message is
published to a topic that nobody reads. A test fails on a subject built in another file.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from actors.delivery import Mailbox

_HANDLE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_SEGMENT: Final = re.compile(r"[^\s.*>\x00-\x20\x7f-\x9f\ud800-\udfff]+")
_REWRITTEN: Final = re.compile(r"[\s*>\x00-\x20\x7f-\x9f\ud800-\udfff]")
_BOXES: Final = ("inbox", "control", "reflect")
_NAMESPACE: Final = re.compile(r"[a-z0-9_]+")

AGENT: Final = "crewlet.agent.>"
NOTIFICATIONS: Final = "crewlet.notifications.>"
EVENTS: Final = "crewlet.events.>"
CONFIG: Final = "crewlet.config.>"
DEAD_LETTERS: Final = "dlq.>"
INBOXES: Final = "crewlet.agent.*.inbox"
INBOUND: Final = "crewlet.notifications.inbound"

DIGEST_LENGTH: Final = 12

MAX_SUBJECT_BYTES: Final = 255


def is_handle(text: str) -> bool:
    """A handle is one subject token: small letters, digits, `-` and `_`, at most 63."""
    return _HANDLE.fullmatch(text) is not None


def is_subject(text: str) -> bool:
    """No empty segment, white space, wildcard or control character; at most 255 bytes."""
    segments = all(_SEGMENT.fullmatch(segment) is not None for segment in text.split("."))
    return segments and len(text.encode()) <= MAX_SUBJECT_BYTES


def inbox(handle: str) -> str:
    """All work of a seat."""
    return _agent(handle, "inbox")


def control(handle: str) -> str:
    """Starts and ends of long runs: never parked behind the inbox that they hold."""
    return _agent(handle, "control")


def reflect(handle: str) -> str:
    """A finished turn, for reflection on the node that holds the seat."""
    return _agent(handle, "reflect")


def event(event_type: str) -> str:
    """The record of what happened; no work is ever routed from it."""
    return _checked(f"crewlet.events.{event_type}")


def config(what: str) -> str:
    """A nudge about revisions: worth a look at the store, and nothing else."""
    return _checked(f"crewlet.config.{what}")


def question(name: str) -> str:
    """What is asked and answered without being stored; no stream covers it."""
    return _checked(f"crewlet.ask.{name}")


def node_control(node_id: str) -> str:
    """What operators ask of one node by way of another; asked and answered, never stored."""
    if not is_handle(node_id):
        raise ValueError(f"{node_id!r} is no node id: it is written as a handle is")
    return _checked(f"crewlet.control.{node_id}")


def inbox_of(handle: str) -> Mailbox:
    return Mailbox(topic=inbox(handle), group=_group(handle))


def control_of(handle: str) -> Mailbox:
    return Mailbox(topic=control(handle), group=_group(handle))


def reflect_of(handle: str) -> Mailbox:
    return Mailbox(topic=reflect(handle), group=_group(handle))


def inbound() -> Mailbox:
    """Deliveries from outside: one group for the whole fleet."""
    return Mailbox(topic=INBOUND, group="notify-inbound")


def dead_letter(mailbox: Mailbox) -> str:
    """Outside `crewlet.*`, so that no live stream shows poison; the digest is the identity,
    and what stands before it is cut where the whole would be too long for a subject."""
    head = ".".join(
        _REWRITTEN.sub("_", segment) or "_"
        for segment in f"{mailbox.topic}.{mailbox.group}".split(".")
    )
    room = MAX_SUBJECT_BYTES - len("dlq..") - DIGEST_LENGTH
    head = head.encode()[:room].decode(errors="ignore").rstrip(".")
    return _checked(f"dlq.{head}.{digest(mailbox)}")


def digest(mailbox: Mailbox) -> str:
    """12 hex digits that tell (topic, group) pairs apart whatever a rewrite makes of them."""
    text = f"{mailbox.group}\0{mailbox.topic}".encode()
    return hashlib.sha256(text).hexdigest()[:DIGEST_LENGTH]


def namespace(subject: str) -> str:
    """The namespace that a subject lives in: `agent` of `crewlet.agent.dev.inbox`.

    A name that would alias after rewriting is refused (ValueError), never merged.
    """
    segments = _checked(subject).split(".")
    name = segments[1] if segments[0] == "crewlet" and len(segments) > 2 else segments[0]
    if _NAMESPACE.fullmatch(name) is None:
        raise ValueError(
            f"the namespace {name!r} of the subject {subject!r} may hold small letters, "
            "digits and '_' only"
        )
    return name


def patterns_of(namespace: str) -> tuple[str, ...]:
    """All subjects of a namespace: under our root, alone, and as a root of its own.

    `crewlet.x` has two segments only and lives in the namespace `crewlet`; what is deeper
    below our root belongs to other namespaces.
    """
    own = "crewlet.*" if namespace == "crewlet" else f"{namespace}.>"
    return (f"crewlet.{namespace}.>", namespace, own)


def namespace_of_pattern(pattern: str) -> str:
    """The namespace that a pattern such as EVENTS covers whole."""
    return namespace(pattern.removesuffix(">") + "any")


def handle_of(topic: str) -> str | None:
    """The seat whose topic this is: the inverse of inbox, control and reflect."""
    segments = topic.split(".")
    ours = len(segments) == 4 and segments[:2] == ["crewlet", "agent"] and segments[3] in _BOXES
    return segments[2] if ours and is_handle(segments[2]) else None


def _agent(handle: str, box: str) -> str:
    if not is_handle(handle):
        raise ValueError(
            f"{handle!r} is no handle: small letters, digits, '-' and '_', at most 63 characters"
        )
    return f"crewlet.agent.{handle}.{box}"


def _group(handle: str) -> str:
    return f"agent-{handle}"


def _checked(subject: str) -> str:
    if not is_subject(subject):
        raise ValueError(f"{subject!r} is no subject: empty segment, white space or wildcard")
    return subject
