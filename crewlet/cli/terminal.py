"""What a terminal is, and how text of unknown origin is made safe to show on one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, TextIO

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Control characters, and the marks that turn the direction of what follows: a webhook's
# sender must not be able to recolour, overwrite or reverse a line of ours.
_UNSAFE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def is_rich(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """A terminal, without NO_COLOR (https://no-color.org) and not a dumb one."""
    if environment.get("NO_COLOR") or environment.get("TERM", "") in ("", "dumb"):
        return False
    return stream.isatty()


def visible(text: str) -> str:
    """The text on one line, with everything that would act on a terminal escaped."""
    return _UNSAFE.sub(_escaped, text)


def width(text: str) -> int:
    """Columns that the text takes: wide East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
