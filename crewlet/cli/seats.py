"""`crewlet seats`: every seat of the company and what it is doing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask
from crewlet.cli.table import Column

EPILOG = """\b
Examples:
  crewlet seats
  crewlet seats | grep dev
  crewlet seats -o json | jq '.[] | select(.waiting > 0) | .handle'
\b
WAITING is mail nobody was handed yet, IN_FLIGHT mail that a turn works on or that waits for
its next try. TURNS are those of the node that answers since it started, of the seats that it
works. A cell that is empty has nothing to say, or is not known to this node now.
"""

COLUMNS: Final = (
    Column("handle"),
    Column("name"),
    Column("kind"),
    Column("unit"),
    Column("state"),
    Column("owner"),
    Column("waiting"),
    Column("in_flight"),
    Column("turns"),
    Column("last_turn"),
    Column("contact"),
)


@click.command(epilog=EPILOG)
@node_option
@output_option
def seats(data: Path, out: Output) -> None:
    """List the seats, who runs them, and the mail they have."""
    out.rows(ask(data, "seats"), COLUMNS)
