"""`crewlet shell`: operate a node, and through it the fleet, line by line.

It speaks over the node's Unix socket, as every command does. A line is a command of `crewlet`
without that word: nothing is evaluated, and there is nothing to say that is not in the table.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from crewlet.cli.console import run_line
from crewlet.cli.exits import OK
from crewlet.cli.options import ON, node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask

if TYPE_CHECKING:
    from prompt_toolkit.history import History

HISTORY: Final = "shell_history"

EPILOG: Final = """\b
Examples:
  crewlet shell                                  at the prompt: help, Tab, Ctrl-D
  crewlet shell -c 'why dev'                     one line, for scripts
  crewlet shell -c 'seat pause dev' -c 'ps' -o jsonl
  crewlet shell --on n2 < lines.txt              on another node of the fleet
\b
With -c and from a pipe the first line that fails ends it, with its exit code.
"""


@click.command(epilog=EPILOG)
@click.option("-c", "lines", multiple=True, metavar="LINE", help="Run this line, then leave.")
@node_option
@output_option
@click.pass_context
def shell(context: click.Context, lines: tuple[str, ...], data: Path, out: Output) -> int:
    """Look inside a node and operate it, at a prompt or from a script.

    Every line is a command of `crewlet` without that word; `help` lists them.
    """
    with _said_before(data, context.meta.get(ON)):
        if lines:
            return _script((line for text in lines for line in text.splitlines()), out.format)
        if not sys.stdin.isatty():
            return _script(sys.stdin, out.format)
        return _prompt(data, context.meta.get(ON), out.format)


@contextlib.contextmanager
def _said_before(data: Path, on: str | None) -> Iterator[None]:
    """What the shell was given holds for its lines, unless they say otherwise: as variables,
    which is how a command line takes what it is not told."""
    given = {"CREWLET_DATA": str(data), "CREWLET_ON": on or ""}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _script(lines: Iterable[str], form: str) -> int:
    for line in lines:
        code = run_line(line, form)
        if code is None:
            break
        if code != OK:
            return code
    return OK


# -- at the prompt ------------------------------------------------------------------------


def _prompt(data: Path, on: str | None, form: str) -> int:
    """Until exit or Ctrl-D. A line that fails says so, and the next one is asked for."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.patch_stdout import patch_stdout

    from crewlet.cli.completion import Names, Verbs

    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ctrl-C ends a line, not the shell
    session: PromptSession[str] = PromptSession(
        completer=Verbs(Names(data)),
        complete_in_thread=True,
        complete_while_typing=False,
        history=_history(data),
    )
    click.echo(_greeting(data))
    while True:
        try:
            with patch_stdout():
                line = session.prompt(f"{on or 'crewlet'}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return OK
        if _run(line, form) is None:
            return OK


def _run(line: str, form: str) -> int | None:
    """Ctrl-C ends what follows, and leads back to the prompt."""
    try:
        return run_line(line, form)
    except KeyboardInterrupt:
        click.echo(err=True)
        return OK
    except SystemExit as left:
        return int(left.code) if isinstance(left.code, int) else OK


def _greeting(data: Path) -> str:
    """Who answers here. Raises Failed where nobody does: better now than at the first line."""
    (row,) = ask(data, "status")
    status = json.loads(row)
    return (
        f"node {status['node']} of {status['company']}, {status['seats']} seats, "
        f"{status['state']}; `help` shows its nouns and verbs, Ctrl-D leaves"
    )


def _history(data: Path) -> History:
    """Lines of earlier sessions, for nobody but this user; none where the folder takes no file."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = data / HISTORY
    try:
        opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(opened, 0o600)
        os.close(opened)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
