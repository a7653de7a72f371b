"""The sources that this build knows, by vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from crewlet.sources.github import GitHub
from crewlet.sources.notification import Parsed


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


_SOURCES: Final[Mapping[str, Source]] = {source.name: source for source in (GitHub(),)}


def vendors() -> tuple[str, ...]:
    """The names of all sources."""
    return tuple(_SOURCES)


def find(vendor: str) -> Source | None:
    """The source of this name, None where this build has none."""
    return _SOURCES.get(vendor)


def kept_headers(vendor: str) -> tuple[str, ...]:
    """The headers in lower case that go with a delivery, none of an unknown vendor."""
    source = find(vendor)
    return ("content-type", "user-agent", *source.kept) if source else ()


def contact_kind(vendor: str) -> str:
    """The contact field that holds a seat's name at this vendor, '' of an unknown vendor."""
    source = find(vendor)
    return source.contact if source else ""
