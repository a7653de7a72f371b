"""A value that no log, error, repr or encoder may show."""

from __future__ import annotations

import hmac
from typing import NoReturn


class Secret:
    """Text that only `reveal()` shows; `str`, `repr` and formatting give `***`.

    It is no msgspec type on purpose: a struct that holds one can't be encoded by accident.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself: to sign or to verify with, never to print."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: it would lie readable in the bytes")
