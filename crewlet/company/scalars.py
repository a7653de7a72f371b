"""What a scalar may be: each check answers with a sentence, or with the value."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final

from crewlet.company.key import Key

MAX_LINE: Final = 1000
NOTHING: Final = frozenset({"null", "Null", "NULL", "~"})
"""Words that mean 'no value' to YAML; refused unquoted, so that nobody has to guess."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")
_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSEEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


def line_fault(text: str) -> str:
    """Why this is no text for one line; empty where it is."""
    if not text:
        return "is empty"
    if "\n" in text or "\r" in text:
        return "has more than one line"
    if text != text.strip():
        return "starts or ends with a space"
    if len(text) > MAX_LINE:
        return f"has {len(text)} characters, at most {MAX_LINE} are allowed"
    return _unseen(text, "")


def text_fault(text: str) -> str:
    """Why this is no text of several lines; empty where it is."""
    return "is empty" if not text.strip() else _unseen(text, "\n\t")


def _unseen(text: str, allowed: str) -> str:
    for character in text:
        hidden = unicodedata.category(character) in _UNSEEN or character in _BIDI
        if hidden and character not in allowed:
            return f"holds the control character U+{ord(character):04X}"
    return ""


def number(text: str, key: Key) -> float | None:
    """The number within the key's bounds, or None."""
    wanted = _INTEGER if key.shape == "integer" else _NUMBER
    if wanted.fullmatch(text) is None:
        return None
    value = int(text) if key.shape == "integer" else float(text)
    low = -math.inf if key.minimum is None else key.minimum
    high = math.inf if key.maximum is None else key.maximum
    return value if math.isfinite(value) and low <= value <= high else None


def bounds(key: Key) -> str:
    """`a whole number from 1 to 100`, for messages."""
    noun = "a whole number" if key.shape == "integer" else "a number"
    low = "" if key.minimum is None else f" from {key.minimum:g}"
    high = "" if key.maximum is None else f" to {key.maximum:.10g}"
    return noun + low + high


def flag(text: str) -> bool | None:
    """True or false as YAML 1.2 spells them, or None."""
    return {"true": True, "false": False}.get(text.lower())
