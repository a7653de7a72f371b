"""`crewlet send`: put a task into a seat's inbox."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask

EPILOG = """\b
Examples:
  crewlet send dev "Read the README and list what is missing"
  git log --oneline | crewlet send dev -
  crewlet send dev "Go on" -o json | jq -r .event_id
\b
Returns once the task is stored; the seat works on it as soon as it is free.
"""


@click.command(epilog=EPILOG)
@click.argument("handle")
@click.argument("text")
@click.option("--sender", metavar="NAME", help="Who it is from; you, unless told.")
@node_option
@output_option
def send(handle: str, text: str, sender: str | None, data: Path, out: Output) -> None:
    """Put a task into a seat's inbox.

    The seat HANDLE gets TEXT as a task_assigned event; `-` reads it from standard input.
    """
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("the task is empty")
    args: dict[str, object] = {"handle": handle, "text": _utf8(text)}
    if sender is not None:
        args["sender"] = _utf8(sender)
    for row in ask(data, "send", args):
        out.one(row)


def _utf8(text: str) -> str:
    """Arguments in bytes that are no UTF-8 arrive as lone surrogates, which no JSON takes."""
    return text.encode("utf-8", "replace").decode()
