"""`crewlet channel` and `crewlet ask`: what seats ask one another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from crewlet.cli.acts import Act, group
from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask as ask_node
from crewlet.cli.table import Column

CHANNEL: Final = (
    Act(
        words="channel ls",
        about="List the questions that seats have asked one another.",
        more="QUIET_S is how long nothing has happened; after an hour it is given up.",
        params=(click.Option(["--all"], is_flag=True, help="Also those that are closed."),),
        columns=(
            Column("channel"),
            Column("state"),
            Column("asker"),
            Column("target"),
            Column("messages"),
            Column("quiet_s"),
            Column("closed_by"),
            Column("reason", free=True),
        ),
        examples="channel ls\nchannel ls --all -o jsonl | jq 'select(.closed_by == \"\")'",
    ),
    Act(
        words="channel show",
        about="Show the record of one channel.",
        more="What was said is in the events: `crewlet events --type a2a_message_sent`.",
        params=(click.Argument(["channel"]),),
        examples="channel show a2a-0123456789ab",
    ),
)

channel = group("channel", "What seats ask one another.", CHANNEL)

EPILOG: Final = """\b
Examples, in a command that works a turn:
  crewlet ask qa "Is 1.2 fit to go?"
  git diff | crewlet ask reviewer -
\b
The answer wakes this turn's seat with an event of its own: end the turn.
Exit codes: 0 asked, 3 refused (the sentence says why), 1 not known: fail, and ask again.
"""


@click.command(epilog=EPILOG)
@click.argument("handle")
@click.argument("brief")
@click.option(
    "--turn",
    envvar="CREWLET_TURN_ID",
    default="",
    show_envvar=True,
    metavar="ID",
    help="The turn that asks; a command handler has it in its environment.",
)
@node_option
@output_option
def ask(handle: str, brief: str, turn: str, data: Path, out: Output) -> None:
    """Ask a colleague from inside a turn, and let the turn end.

    The seat HANDLE is woken with BRIEF; `-` reads it from standard input. What its turn says at
    its end is the answer.
    """
    if not turn:
        raise click.UsageError("a turn asks: run this in one, or name it with --turn")
    if brief == "-":
        brief = sys.stdin.buffer.read().decode("utf-8", "replace")
    args = {"handle": handle, "brief": brief.encode("utf-8", "replace").decode(), "turn": turn}
    for row in ask_node(data, "ask", args):
        out.one(row)
