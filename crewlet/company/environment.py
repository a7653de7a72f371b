"""`${NAME}` in values, filled in after the file was parsed: a value can't change the document.

`$$` is a literal dollar; any other dollar (`$5`, `$HOME`) is just a dollar. Keys and comments
are never looked at. Messages name the variable and never what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\{([^}]*)(\}?))")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Missing(Exception):
    """A reference that can't be filled in; the text is the sentence for the person."""


def has_reference(text: str) -> bool:
    """Whether some part of the text comes from the environment."""
    return any(match[0] != "$$" for match in _REFERENCE.finditer(text))


def expand(text: str, env: Mapping[str, str], *, secret: bool = False) -> str:
    """The text with every `${NAME}` filled in; Missing where one is unset.

    With `secret`, a variable that is set to nothing is as good as unset.
    """

    def fill(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else _value(match, env, secret)

    return _REFERENCE.sub(fill, text)


def _value(match: re.Match[str], env: Mapping[str, str], secret: bool) -> str:
    name = match[1]
    if not match[2] or _NAME.fullmatch(name) is None:
        raise Missing(
            f"{match[0][:60]!r} names no variable; write ${{NAME}}, or $$ for a literal dollar"
        )
    value = env.get(name)
    if value is None:
        raise Missing(f"the environment variable {name} is not set")
    if secret and not value:
        raise Missing(f"the environment variable {name} is set but empty; a secret can't be empty")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise Missing(f"the environment variable {name} holds bytes that are no UTF-8 text")
    return value
