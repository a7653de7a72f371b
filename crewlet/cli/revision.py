"""`crewlet revision`: the revisions of the company, one of them whole, and between two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from crewlet.cli import sink
from crewlet.cli.acts import Act, group
from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask
from crewlet.cli.table import Column
from crewlet.cli.terminal import visible

LISTING: Final = Act(
    words="revision ls",
    about="List the revisions, the newest first.",
    columns=tuple(map(Column, ("revision", "active", "at", "by", "digest"))),
    examples="revision ls\nrevision ls -o jsonl",
)

revision = group("revision", "What was applied as the company, and what became different.", ())
revision.add_command(LISTING.command())


@revision.command(
    epilog="""\b
Examples:
  crewlet revision show
  crewlet revision show 3
\b
The text is the file as it was applied: references to variables, never what they stand for. To go
back, put it into a file (`> acme.yaml`), and apply that.
"""
)
@click.argument("number", type=int, required=False)
@node_option
@output_option
def show(number: int | None, data: Path, out: Output) -> None:
    """Print the file of a revision; the active one unless told."""
    for row in ask(data, "revision.show", {"number": number}):
        if out.format == "table":
            _text(json.loads(row)["text"])
        else:
            out.one(row)


@revision.command(
    epilog="""\b
Examples:
  crewlet revision diff
  crewlet revision diff 3
  crewlet revision diff 3 5 -o json
\b
With -o json or jsonl also what it means: seats, routes, integrations, settings.
"""
)
@click.argument("old", type=int, required=False)
@click.argument("new", type=int, required=False)
@node_option
@output_option
def diff(old: int | None, new: int | None, data: Path, out: Output) -> None:
    """Show what is different between two: the last ones unless told."""
    for row in ask(data, "revision.diff", {"old": old, "new": new}):
        if out.format == "table":
            _text("".join(f"{line}\n" for line in json.loads(row)["text"]))
        else:
            out.one(row)


def _text(text: str) -> None:
    """Exactly as it is where a program reads it; a terminal is not made to obey it."""
    if sink.rich_here():
        text = "".join(f"{visible(line)}\n" for line in text.splitlines())
    sink.write(text.encode())
