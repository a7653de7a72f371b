"""What is wrong with a file: every problem with its place, and one error for all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from crewlet.errors import ConfigError

SHOWN_CHARACTERS: Final = 60
MAX_PROBLEMS: Final = 100
"""Problems listed of one file; whoever has more has one cause for most of them."""


class Mark(Struct, frozen=True, order=True):
    """A place in a file, counted from 1; line 0 is the file as a whole."""

    line: int = 0
    column: int = 0


class Problem(Struct, frozen=True, kw_only=True):
    """One thing to mend. `path` leads to it (`roles[2].handle`); empty for the whole file."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return ": ".join(part for part in (place, self.path, self.message) if part)


class FileRefused(ConfigError):
    """A file that is refused whole; its text lists every problem, a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class Report:
    """Collects the problems of one file, so that a person mends them in one go."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._problems: dict[Problem, None] = {}

    def add(self, mark: Mark, path: str, message: str) -> None:
        problem = Problem(
            file=self.file, line=mark.line, column=mark.column, path=path, message=message
        )
        self._problems[problem] = None

    @property
    def problems(self) -> list[Problem]:
        """In the order of the file, the first MAX_PROBLEMS of them."""
        found = sorted(self._problems, key=lambda problem: (problem.line, problem.column))
        more = len(found) - MAX_PROBLEMS
        if more <= 0:
            return found
        rest = Problem(file=self.file, message=f"and {more} more; mend these first")
        return [*found[:MAX_PROBLEMS], rest]

    def __bool__(self) -> bool:
        return bool(self._problems)


def shown(text: str) -> str:
    """A person's own text inside a message: quoted, escaped, and cut where it is long."""
    if len(text) > SHOWN_CHARACTERS:
        text = text[:SHOWN_CHARACTERS] + "..."
    return repr(text)


def nearest(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` where something known is close, else nothing."""
    close = difflib.get_close_matches(word[:SHOWN_CHARACTERS], list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
