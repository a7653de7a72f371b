"""What is written down of one key of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

Shape: TypeAlias = Literal[
    "line",  # text on one line
    "text",  # text, line breaks allowed
    "lines",  # a list of texts, or of `choices`
    "command",  # an argument list
    "filters",  # names of one's own to texts
    "secret",  # a reference to an environment variable
    "integer",
    "number",
    "flag",
    "table",  # the keys of another section
    "named",  # names of one's own to such
    "tables",  # a list of such
]


class Key(Struct, frozen=True, kw_only=True):
    """One key. `of` names the section inside a table; `spellings` are accepted as well;
    `may_be_empty` where '' says something."""

    shape: Shape
    about: str
    default: str = ""
    example: str = ""
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    of: str = ""
    spellings: tuple[str, ...] = ()
    may_be_empty: bool = False


Section: TypeAlias = Mapping[str, Key]
