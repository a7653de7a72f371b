"""`crewlet dlq`: the messages that failed for good: look, replay, drop."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from crewlet.cli import sink, table
from crewlet.cli.acts import Ordered
from crewlet.cli.exits import OK, REFUSED, Failed, of_acts
from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask
from crewlet.cli.table import Column

ALL: Final = 100_000

LETTERS: Final = (
    Column("id"),
    Column("handle"),
    Column("topic"),
    Column("group"),
    Column("deliveries"),
    Column("at"),
    Column("type"),
    Column("event_id"),
    Column("size"),
    Column("reason", free=True),
)
REPLAYED: Final = (
    Column("id"),
    Column("event_id"),
    Column("message_id"),
    Column("replayed"),
    Column("note"),
)
DROPPED: Final = (Column("id"), Column("dropped"), Column("note"))

GROUP_EPILOG = """\b
A message that was delivered 25 times without success becomes a dead letter. It stays until
it is as old as events may be, or until you replay or drop it.
\b
Examples:
  crewlet dlq list
  crewlet dlq show 17
  crewlet dlq replay 17 --dry-run
  crewlet dlq replay --all
"""


@click.group(cls=Ordered, epilog=GROUP_EPILOG)
def dlq() -> None:
    """Dead letters: messages that failed for good."""


@dlq.command(
    "list",
    epilog="""\b
Examples:
  crewlet dlq list
  crewlet dlq list --limit 1000 -o jsonl
""",
)
@click.option(
    "--limit",
    type=click.IntRange(1, ALL),
    default=100,
    show_default=True,
    metavar="N",
    help="How many, the newest first.",
)
@node_option
@output_option
def list_(limit: int, data: Path, out: Output) -> None:
    """List dead letters, with the reason of each."""
    shown = out.rows(ask(data, "dlq.list", {"limit": limit}), LETTERS)
    if shown == limit:
        click.echo(f"crewlet: the first {limit}; --limit shows more", err=True)


@dlq.command(
    epilog="""\b
Examples:
  crewlet dlq show 17
"""
)
@click.argument("letter", metavar="ID")
@node_option
@output_option
def show(letter: str, data: Path, out: Output) -> None:
    """Show one dead letter whole, with its event."""
    for row in ask(data, "dlq.show", {"id": letter}):
        if out.format == "table":
            _show(row)
        else:
            out.one(row)


@dlq.command(
    epilog="""\b
Examples:
  crewlet dlq replay 17 18 --dry-run     what would happen
  crewlet dlq replay 17 18
  crewlet dlq replay --all -o jsonl
\b
Exit codes: 0 all of them, 4 some of them, 3 none of them.
"""
)
@click.argument("letters", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Every dead letter there is.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@node_option
@output_option
def replay(letters: Sequence[str], every: bool, dry_run: bool, data: Path, out: Output) -> int:
    """Give dead letters a new life, once each.

    The same event gets a new message, counted from zero. An ID is that of a letter or of its
    event. A letter that was replayed before is left alone and says so; of an event that a turn
    finished or gave up you are told which.
    """
    ids = _chosen(letters, every, data)
    rows = list(ask(data, "dlq.replay", {"ids": ids, "dry_run": dry_run})) if ids else []
    return _report(rows, len(ids), OK if dry_run else None, "replayed", out, REPLAYED)


@dlq.command(
    epilog="""\b
Examples:
  crewlet dlq drop 17          asks first
  crewlet dlq drop 17 --yes    for scripts
"""
)
@click.argument("letters", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Every dead letter there is.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@node_option
@output_option
def drop(letters: Sequence[str], every: bool, yes: bool, data: Path, out: Output) -> int:
    """Remove dead letters for good. There is no way back."""
    ids = _chosen(letters, every, data)
    if ids and not yes:
        _confirm(len(ids))
    rows = list(ask(data, "dlq.drop", {"ids": ids})) if ids else []
    return _report(rows, len(ids), None, "dropped", out, DROPPED)


def _chosen(letters: Sequence[str], every: bool, data: Path) -> list[str]:
    if every == bool(letters):
        raise click.UsageError("name the dead letters by id, or take --all")
    if not every:
        return list(dict.fromkeys(letters))
    return [str(json.loads(row)["id"]) for row in ask(data, "dlq.list", {"limit": ALL})]


def _confirm(count: int) -> None:
    """A question needs somebody to answer it: without a terminal, the flag is the answer."""
    if not sys.stdin.isatty():
        raise Failed("dropping asks first, and there is no terminal: add --yes", REFUSED)
    letters = "1 dead letter" if count == 1 else f"{count} dead letters"
    click.confirm(f"Drop {letters} for good?", abort=True, err=True)


def _report(
    rows: Sequence[bytes],
    asked: int,
    code: int | None,
    done_key: str,
    out: Output,
    columns: Sequence[Column],
) -> int:
    """Print what was done. The acts are over: a reader that has gone changes no exit code."""
    done = sum(1 for row in _decoded(rows) if row.get(done_key))
    code = of_acts(done, asked) if code is None else code
    try:
        out.rows(rows, columns)
    except BrokenPipeError:
        if code == OK:
            raise
    return code


def _decoded(rows: Iterable[bytes]) -> Iterable[dict[str, object]]:
    return (json.loads(row) for row in rows)


def _show(row: bytes) -> None:
    """The letter's own keys a line each, then the event as JSON."""
    keys = json.loads(row)
    keys.pop("event", None)
    event = msgspec.json.decode(row, type=dict[str, msgspec.Raw]).get("event")
    sink.write_text(table.pairs(keys))
    if event is not None:
        sink.write(b"event\n" + msgspec.json.format(bytes(event), indent=2) + b"\n")
