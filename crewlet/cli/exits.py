"""Exit codes, and how a command ends with one and a sentence."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
PARTIAL: Final = 4
INTERRUPTED: Final = 130


class Failed(Exception):
    """Ends the command with a sentence on stderr and this exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def of_acts(done: int, asked: int) -> int:
    """The code of a command that did `done` of `asked` acts."""
    if done == asked:
        return OK
    return PARTIAL if done else REFUSED
