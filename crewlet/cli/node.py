"""`crewlet status` and `crewlet drain`: the node as a whole."""

from __future__ import annotations

from pathlib import Path

import click

from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask


@click.command(
    epilog="""\b
Examples:
  crewlet status
  crewlet status --on n2 -o json
"""
)
@node_option
@output_option
def status(data: Path, out: Output) -> None:
    """Show the node that runs on the data folder."""
    for row in ask(data, "status"):
        out.one(row)


@click.command(
    epilog="""\b
The same as one Ctrl-C in the terminal of `crewlet up`. To keep the process, and have other
nodes take the seats: `crewlet node drain`.
\b
Examples:
  crewlet drain
"""
)
@node_option
@output_option
def drain(data: Path, out: Output) -> None:
    """Stop the node gently.

    No new turn starts, running ones may finish, everything else stays in its mailbox.
    """
    for row in ask(data, "drain"):
        out.one(row)
