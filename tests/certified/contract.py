"""Reads docs/contract.md: the numbers, and the line of each."""

from __future__ import annotations

import re
from pathlib import Path

CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"

_LINE = re.compile(r"(\d+)\. (\S.*)")


def read(path: Path = CONTRACT) -> dict[int, str]:
    """Number to text. Raises ValueError where a number is used twice or out of order."""
    lines: dict[int, str] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        if (match := _LINE.fullmatch(text)) is None:
            continue
        number = int(match[1])
        if lines and number <= max(lines):
            raise ValueError(f"{path.name}: {number} comes after {max(lines)}")
        lines[number] = match[2]
    return lines
