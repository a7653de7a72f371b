"""`crewlet events`: what happens, as it happens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output, encode
from crewlet.cli.remote import ask
from crewlet.cli.table import Column

EPILOG = """\b
Examples:
  crewlet events                                 the last 20
  crewlet events --follow                        from now on, until Ctrl-C or the node's stop
  crewlet events --follow --type 'agent_turn_*'  one kind only
  crewlet events --follow -o jsonl | jq .type
\b
Following ends with 0 when the node stops or when the reader of the output goes away.
"""

COLUMNS: Final = (
    Column("timestamp", "time", least=27),
    Column("type", least=22),
    Column("source", least=12),
    Column("id", least=36),
    Column("summary", free=True),
)


@click.command(epilog=EPILOG)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens from now.")
@click.option(
    "--last",
    type=click.IntRange(0, 10_000),
    metavar="N",
    help="How many past events first; 20, or none with --follow.",
)
@click.option(
    "--type",
    "kind",
    default="*",
    metavar="GLOB",
    help="Only this type, or those that match; of a pattern, among the newest 1,000.",
)
@node_option
@output_option
def events(follow: bool, last: int | None, kind: str, data: Path, out: Output) -> None:
    """Show what happened, and follow what happens.

    Events are the record of the work, never the work itself: reading them changes nothing.
    """
    if last is None:
        last = 0 if follow else 20
    args = {"follow": follow, "last": last, "type": kind}
    rows = ask(data, "events", args, follow=follow)
    shown = out.stream(map(_told, rows) if out.format == "table" else rows, COLUMNS)
    if not shown and out.format == "table" and last:
        click.echo("crewlet: no such event is kept", err=True)


def _told(row: bytes) -> bytes:
    """The row's columns, with who did what: an event says that itself (docs/contract.md 179)."""
    from crewlet.errors import CorruptEvent
    from crewlet.events import decode

    try:
        event = decode(row)
    except CorruptEvent:
        return row
    return encode(
        {
            "timestamp": event.timestamp,
            "type": event.type,
            "source": event.source,
            "id": event.id,
            "summary": event.summary,
        }
    )
