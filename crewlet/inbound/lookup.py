"""Conversations that a payload does not name, asked for: a callable for each source.

A server's new comment says its own id and not its page's. Only the vendor's API knows more, and how
to ask it is the company's: we call its function with the notification's metadata.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog
from msgspec import Struct, structs

from crewlet.company import Company
from crewlet.handlers.callable import is_async
from crewlet.handlers.target import load
from crewlet.handlers.threads import run_in_thread
from crewlet.sources import Notification

LOOKUP_S: Final = 5.0
"""How long one may take: a delivery from outside is in a router's hands for 20 s."""

MAX_KEY: Final = 255

Look: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Given a notification's metadata; answers Found, the key alone, or None. Sync or async."""

log = structlog.get_logger(__name__)


class Found(Struct, frozen=True):
    """The conversation's key without its source (`POC-7`, a page's id), and whom the text
    addresses, by the vendor's names."""

    key: str
    addressed: tuple[str, ...] = ()


class Failed(Struct, frozen=True):
    """Why a conversation is not known."""

    detail: str


class Lookups:
    """`given` are an embedder's own, by source; the company's file names the others, which are
    looked for in `folder` too."""

    def __init__(self, given: Mapping[str, Look], folder: Path | None = None) -> None:
        self._given = dict(given)
        self._folder = folder
        self._loaded: dict[str, Look] = {}

    def check(self, company: Company) -> None:
        """ConfigError for a name in the company's file that leads to no function."""
        for source in company.integrations.lookups():
            self.of(company, source)

    def of(self, company: Company, source: str) -> Look | None:
        """The callable of a source; None where it has none. ConfigError."""
        if source in self._given:
            return self._given[source]
        target = company.integrations.lookups().get(source)
        if target is None:
            return None
        if target not in self._loaded:
            key = f"lookup of {source}"
            self._loaded[target] = load(target, self._folder, key=key, given="the metadata")
        return self._loaded[target]

    async def named(self, notification: Notification, company: Company) -> Notification | Failed:
        """The notification in its conversation, or why that is not known. Whatever the callable
        does, this raises nothing and answers in time."""
        source = notification.source
        try:
            look = self.of(company, source)
            if look is None:
                return Failed(
                    f"{source} has no lookup; name one in the company file "
                    f"(`integrations: {{{source}: {{lookup: module:function}}}}`)"
                )
            async with asyncio.timeout(LOOKUP_S):
                answer = await _asked(look, notification)
        except TimeoutError:
            return Failed(f"the lookup of {source} did not answer within {LOOKUP_S:.0f} s")
        except Exception as error:
            log.warning("lookup_failed", source=source, exc_info=error)
            return Failed(f"the lookup of {source} failed: {type(error).__name__}: {error}"[:500])
        return _placed(notification, answer)


async def _asked(look: Look, notification: Notification) -> Any:
    metadata = dict(notification.metadata)
    if is_async(look):
        return await look(metadata)
    answer = await run_in_thread(look, metadata, f"lookup {notification.source}")
    return await answer if inspect.isawaitable(answer) else answer


def _placed(notification: Notification, answer: object) -> Notification | Failed:
    source = notification.source
    found = Found(answer) if isinstance(answer, str) else answer
    if found is None:
        return Failed(f"the lookup of {source} does not know the conversation either")
    if not isinstance(found, Found):
        return Failed(f"the lookup of {source} answered {type(answer).__name__}, not Found")
    local = found.key.removeprefix(f"{source}:") if isinstance(found.key, str) else ""
    if not _is_key(local):
        return Failed(f"the lookup of {source} answered a key that is none: {found.key!r}"[:500])
    key, addressed = f"{source}:{local}", _others(notification, found.addressed)
    return structs.replace(
        notification,
        verdict="wake" if addressed else "follow",
        partition_key=key,
        conversation_identity=key,
        addressed=addressed,
    )


def _is_key(text: str) -> bool:
    return 0 < len(text) <= MAX_KEY and text.isprintable() and text.strip() == text


def _others(notification: Notification, found: object) -> tuple[str, ...]:
    """Everybody who is addressed, each once; never the sender."""
    called = found if isinstance(found, tuple | list) else ()
    names = (*notification.addressed, *(name for name in called if isinstance(name, str) and name))
    own = notification.sender.casefold()
    once = {name.casefold(): name for name in reversed(names)}
    return tuple(reversed([name for folded, name in once.items() if folded != own]))
