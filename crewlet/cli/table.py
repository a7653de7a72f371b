"""Rows as columns: plain text for pipes, a rich table for a terminal. Nothing is ever cut
where a program may read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crewlet.cli.terminal import visible, width

Row = Mapping[str, object]

GAP = "  "


@dataclass(frozen=True)
class Column:
    """One column: `key` of the row under `header` (the key itself unless told).

    `least` is the width that a stream keeps free for it, as it can't see what comes. `free`
    is text of any length: a terminal shows its beginning, everything else all of it.
    """

    key: str
    header: str = ""
    least: int = 0
    free: bool = False

    @property
    def title(self) -> str:
        return (self.header or self.key).upper()

    def cell(self, row: Row) -> str:
        return visible(cell(row.get(self.key)))


def cell(value: object) -> str:
    """A value as a person reads it; empty where there is none."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={cell(inner)}" for key, inner in value.items() if inner)
    return json.dumps(value, ensure_ascii=False)


def plain(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """A header and a line a row, each column as wide as its widest cell, nothing cut."""
    lines = [[column.title for column in columns]]
    lines += [[column.cell(row) for column in columns] for row in rows]
    widths = [max(width(line[at]) for line in lines) for at in range(len(columns))]
    return "".join(_line(line, widths) for line in lines)


def header_line(columns: Sequence[Column]) -> str:
    """The header of a stream."""
    return _line([column.title for column in columns], [column.least for column in columns])


def stream_line(row: Row, columns: Sequence[Column]) -> str:
    """One line of a stream; a cell wider than its column pushes the rest to the right."""
    return _line([column.cell(row) for column in columns], [column.least for column in columns])


def pairs(row: Row) -> str:
    """One object, a line a key."""
    widest = max((width(key) for key in row), default=0)
    return "".join(_line([key, visible(cell(value))], [widest, 0]) for key, value in row.items())


def framed(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """The table of a terminal: handles and ids are folded where it is narrow, never cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        if column.free:
            table.add_column(column.title, overflow="ellipsis", no_wrap=True)
        else:
            table.add_column(column.title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(column.cell(row)) for column in columns))
    Console(soft_wrap=False, highlight=False).print(table)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [text + " " * (least - width(text)) for text, least in zip(cells, widths, strict=True)]
    return GAP.join(padded).rstrip() + "\n"
