"""What the chat sources share: the place of a message with its keys, its time, the bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from crewlet.sources.mentions import MAX_MENTIONS, MAX_SCANNED

_SECONDS: Final = re.compile(r"[0-9]{1,11}(\.[0-9]{1,9})?")
_FENCE: Final = "```"


class Place(Struct, frozen=True, kw_only=True):
    """Where a message stands. `thread` is the first message of its thread, empty outside one;
    `direct` channels are those of two people or of a group, without a name."""

    channel: str = ""
    message: str = ""
    thread: str = ""
    direct: bool = False

    @property
    def partition(self) -> str:
        """The channel of a direct message, else the channel and the thread's first message."""
        root = self.thread or ("" if self.direct else self.message)
        if not self.channel or not (root or self.direct):
            return ""
        return f"{self.channel}:{root}" if root else self.channel

    @property
    def identity(self) -> str:
        """A direct conversation is its channel, however it is threaded."""
        return self.channel if self.direct else self.partition


def prose(text: str) -> str:
    """The text without code, blocks and spans: what stands there only shows.

    Linear: a fence or a backtick that nothing closes hides nothing.
    """
    lines = _outside(text[:MAX_SCANNED], _FENCE).split("\n")
    return " ".join(_outside(line, "`") for line in lines)


def _outside(text: str, mark: str) -> str:
    pieces = text.split(mark)
    if len(pieces) % 2 == 0:  # the last mark opens and nothing closes it
        pieces[-2:] = [mark.join(pieces[-2:])]
    return " ".join(pieces[::2])


def distinct(names: Iterable[str], *without: str) -> tuple[str, ...]:
    """Each name once whatever its case, in order, MAX_MENTIONS at most, none of `without`."""
    left_out = {name.casefold() for name in without}
    return tuple(_taken(names, left_out))


def _taken(names: Iterable[str], seen: set[str]) -> Iterator[str]:
    count = 0
    for name in names:
        folded = name.casefold()
        if folded in seen:
            continue
        seen.add(folded)
        yield name
        count += 1
        if count == MAX_MENTIONS:
            return


def moment(seconds: str) -> str:
    """RFC 3339 of seconds since 1970 as a vendor writes them, '' where they are none."""
    if _SECONDS.fullmatch(seconds) is None:
        return ""
    try:
        at = datetime.fromtimestamp(float(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return at.isoformat().replace("+00:00", "Z")
