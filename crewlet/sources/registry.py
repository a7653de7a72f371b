"""The sources that this build knows, by vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from crewlet.sources.confluence import Confluence
from crewlet.sources.generic import Generic
from crewlet.sources.generic_rule import PREFIX
from crewlet.sources.github import GitHub
from crewlet.sources.gitlab import GitLab
from crewlet.sources.jira import Jira
from crewlet.sources.mattermost import Mattermost
from crewlet.sources.notification import Parsed
from crewlet.sources.plane import Plane
from crewlet.sources.reply import Reply
from crewlet.sources.slack import Slack


class Source(Protocol):
    """One vendor. No method blocks, waits or reads a clock; only `decode` raises."""

    @property
    def name(self) -> str:
        """The vendor as paths and routes spell it."""

    @property
    def contact(self) -> str:
        """The kind of a seat's contact that holds this vendor's names."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The headers, in lower case, that `delivery_key` and `parse` need beside the content
        type. Never one with a signature or a token: what is kept is stored and shown."""

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether the vendor signed exactly these bytes."""

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """The vendor's id of the delivery, '' where it sends none."""

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The decoded body. Raises Unreadable where it is not the format it claims."""

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says: never empty."""


@runtime_checkable
class Keyed(Protocol):
    """A source whose deliveries are named in the body, and not in a header."""

    def payload_key(self, headers: Mapping[str, str], payload: object) -> str:
        """The vendor's id of the delivery, '' where it sends none."""


@runtime_checkable
class Replying(Protocol):
    """A source whose vendor wants another answer than the edge's own."""

    def reply(self, payload: object) -> Reply | None:
        """The answer to a verified delivery, None for the edge's own."""


@runtime_checkable
class Tokened(Protocol):
    """A source whose vendor puts a token into the body."""

    def published(self, body: bytes) -> bytes:
        """The body as it is stored and shown: without the token."""


_KNOWN: Final[tuple[Source, ...]] = (
    GitHub(),
    GitLab(),
    Jira(),
    Confluence(),
    Plane(),
    Slack(),
    Mattermost(),
)
_SOURCES: Final[Mapping[str, Source]] = {source.name: source for source in _KNOWN}


def vendors() -> tuple[str, ...]:
    """The names of all sources but those of a company's own, which are `generic/NAME`."""
    return tuple(_SOURCES)


def find(vendor: str) -> Source | None:
    """The source of this name, None where this build has none."""
    if vendor.startswith(PREFIX):
        return Generic(vendor)
    return _SOURCES.get(vendor)


def keyed(vendor: str) -> Keyed | None:
    """The source of this name where it reads its deliveries' ids from their bodies."""
    source: object = find(vendor)
    return source if isinstance(source, Keyed) else None


def replying(vendor: str) -> Replying | None:
    """The source of this name where it has answers of its own."""
    source: object = find(vendor)
    return source if isinstance(source, Replying) else None


def tokened(vendor: str) -> Tokened | None:
    """The source of this name where its bodies hold a token."""
    source: object = find(vendor)
    return source if isinstance(source, Tokened) else None


def kept_headers(vendor: str) -> tuple[str, ...]:
    """The headers in lower case that go with a delivery, none of an unknown vendor."""
    source = find(vendor)
    return ("content-type", "user-agent", *source.kept) if source else ()


def contact_kind(vendor: str) -> str:
    """The contact field that holds a seat's name at this vendor, '' of an unknown vendor."""
    source = find(vendor)
    return source.contact if source else ""
