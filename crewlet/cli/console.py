"""One grammar for the shell and for `crewlet`: the closed table of what operators can say."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from typing import Any, Final

import click

from crewlet.cli.acts import Ordered
from crewlet.cli.apply import apply
from crewlet.cli.channel import ask, channel
from crewlet.cli.dlq import dlq
from crewlet.cli.events import events
from crewlet.cli.exits import OK, USAGE
from crewlet.cli.fleet import lease, node
from crewlet.cli.inside import consumer, inbox, plain, trace
from crewlet.cli.node import drain, status
from crewlet.cli.revision import revision
from crewlet.cli.run import run
from crewlet.cli.running import run_in, say
from crewlet.cli.schedule import schedule
from crewlet.cli.seat import seat
from crewlet.cli.seats import seats
from crewlet.cli.send import send
from crewlet.cli.top import top

OPERATING: Final = (
    send,
    seats,
    seat,
    run,
    *plain,
    top,
    trace,
    inbox,
    consumer,
    events,
    dlq,
    channel,
    ask,
    apply,
    revision,
    node,
    lease,
    schedule,
    status,
    drain,
)
"""The commands that ask a node, in the order in which `help` lists them."""

LEAVE: Final = ("exit", "quit")
HELP: Final = "help"


SETTINGS: Final[dict[str, Any]] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
}

console = Ordered(
    "crewlet",
    commands={str(command.name): command for command in OPERATING},
    context_settings=SETTINGS,
)


def run_line(line: str, form: str = "table") -> int | None:
    """Run one line, printed as `form` unless it says otherwise; its exit code, or None where it
    says to leave. What is no verb is refused with what is like it: nothing of a line is ever
    run as anything else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        left = "a quote has to be closed" if "quotation" in str(error) else "a \\ escapes nothing"
        return say(f"the line is not whole: {left}", USAGE)
    if not words:
        return OK
    if words[0] in LEAVE and len(words) == 1:
        return None
    if words[0] == HELP:
        return _help(words[1:])
    if words[0] not in console.commands:
        return _unknown(words[0], list(console.commands))
    return run_in(console, words, _defaults(console, form))


def _defaults(command: click.Group, form: str) -> dict[str, Any]:
    """`-o` of every command, as click takes what a line does not say."""
    return {
        name: _defaults(each, form) if isinstance(each, click.Group) else {"out": form}
        for name, each in command.commands.items()
    }


def find(words: Sequence[str]) -> tuple[click.Command, Sequence[str]]:
    """The command that the words name, and those that are left over."""
    found: click.Command = console
    for at, word in enumerate(words):
        below = found.commands if isinstance(found, click.Group) else {}
        if word not in below:
            return found, words[at:]
        found = below[word]
    return found, ()


def _help(words: Sequence[str]) -> int:
    found, rest = find(words)
    if rest:
        known = found.commands if isinstance(found, click.Group) else {}
        return _unknown(rest[0], list(known)) if known else _help(words[: -len(rest)])
    if found is console:
        click.echo(_overview())
    else:
        path = " ".join(["crewlet", *words])
        click.echo(found.get_help(click.Context(found, info_name=path, **SETTINGS)))
    return OK


def _overview() -> str:
    lines = ["Verbs (the same as commands of `crewlet`; `help VERB` shows examples):", ""]
    for name, command in console.commands.items():
        below = command.commands.items() if isinstance(command, click.Group) else ()
        verbs = [(f"{name} {verb}", each) for verb, each in below] or [(name, command)]
        lines += [f"  {verb:<16}{each.get_short_help_str(78)}" for verb, each in verbs]
    lines += ["", f"  {'help [VERB]':<16}This, or one verb.", f"  {'exit':<16}Leave (Ctrl-D)."]
    return "\n".join(lines)


def _unknown(word: str, known: Sequence[str]) -> int:
    near = difflib.get_close_matches(word, known, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return say(f"there is no verb {word[:40]!r}; {hint}`help` lists them all", USAGE)
