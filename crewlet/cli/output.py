"""`-o table|json|jsonl`: three ways to print the same rows.

JSON is UTF-8 whatever the locale, and is the node's own bytes: no number is rounded, no
string is wrapped. Tables are text in the locale's encoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from crewlet.cli import sink, table
from crewlet.cli.table import Column, Row

Format = Literal["table", "json", "jsonl"]

FORMATS: Final[tuple[Format, ...]] = ("table", "json", "jsonl")


@dataclass(frozen=True)
class Output:
    """Where the rows of one command go. Every method may raise BrokenPipeError."""

    format: Format = "table"

    def rows(self, rows: Iterable[bytes], columns: Sequence[Column]) -> int:
        """A listing: a table, an array, or a line a row. Returns how many rows there were."""
        match self.format:
            case "table":
                return _listing([_decoded(row) for row in rows], columns)
            case "json":
                return _array(rows)
            case "jsonl":
                return _lines(rows)

    def stream(self, rows: Iterable[bytes], columns: Sequence[Column]) -> int:
        """As `rows`, and each row is shown as it comes."""
        if self.format != "table":
            return self.rows(rows, columns)
        return _streamed(rows, columns)

    def one(self, row: bytes) -> None:
        """A single object: a line a key, or the object."""
        match self.format:
            case "table":
                sink.write_text(table.pairs(_decoded(row)))
            case "json":
                sink.write(_pretty(row) + b"\n")
            case "jsonl":
                sink.write(_compact(row) + b"\n")


def encode(row: object) -> bytes:
    """A row that was made here rather than by a node."""
    return msgspec.json.encode(row)


def _decoded(row: bytes) -> Row:
    value: Any = json.loads(row)
    return value if isinstance(value, dict) else {"value": value}


def _listing(rows: Sequence[Row], columns: Sequence[Column]) -> int:
    if sink.rich_here():
        table.framed(rows, columns)
    else:
        sink.write_text(table.plain(rows, columns))
    return len(rows)


def _streamed(rows: Iterable[bytes], columns: Sequence[Column]) -> int:
    """The header comes with the first row: a failure leaves no header behind."""
    count = 0
    for row in rows:
        header = "" if count else table.header_line(columns)
        sink.write_text(header + table.stream_line(_decoded(row), columns))
        count += 1
    return count


def _array(rows: Iterable[bytes]) -> int:
    """An array that is whole whenever the rows end, also with an error; without a single row
    an error leaves nothing on standard output."""
    count = 0
    try:
        for row in rows:
            sink.write((b",\n  " if count else b"[\n  ") + _pretty(row).replace(b"\n", b"\n  "))
            count += 1
    except BrokenPipeError:
        raise
    except BaseException:
        if count:
            sink.write(b"\n]\n")
        raise
    sink.write(b"\n]\n" if count else b"[]\n")
    return count


def _lines(rows: Iterable[bytes]) -> int:
    count = 0
    for row in rows:
        sink.write(_compact(row) + b"\n")
        count += 1
    return count


def _pretty(row: bytes) -> bytes:
    return msgspec.json.format(row, indent=2)


def _compact(row: bytes) -> bytes:
    """One line: a value that was sent on as it came in may hold line breaks."""
    return msgspec.json.format(row, indent=-1)
