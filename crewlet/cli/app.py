"""The command `crewlet`: its nouns, and what each way of failing means for the exit code.

0 ok, 1 failed, 2 usage, 3 refused, 4 partial answer, 130 interrupted. A reader of our output
that goes away early (`| head -1`) has what it wanted: 0, and nothing on stderr.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from crewlet.cli.check import check
from crewlet.cli.dlq import dlq
from crewlet.cli.events import events
from crewlet.cli.exits import FAILED, OK, REFUSED, USAGE, Failed
from crewlet.cli.node import drain, status
from crewlet.cli.schema import schema
from crewlet.cli.seats import seats
from crewlet.cli.send import send
from crewlet.cli.up import up
from crewlet.cli.version import version
from crewlet.errors import CrewletError

_REFUSALS: Final = frozenset({"not_running", "node_refused", "broker_refused"})

EPILOG: Final = """\b
First steps:
  crewlet up                        run the demo company, data in ./.crewlet
  crewlet send dev "Say hello"      give a seat something to do (another shell)
  crewlet events --follow           watch what happens
\b
Exit codes: 0 ok, 1 failed, 2 usage, 3 refused, 4 partial answer.
"""


SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(epilog=EPILOG, context_settings=SETTINGS)
def app() -> None:
    """Run companies of AI agents: every seat an actor with a durable mailbox."""


for _command in (up, check, schema, send, seats, events, dlq, status, drain, version):
    app.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; click's own `main` has other codes."""
    if "_CREWLET_COMPLETE" in os.environ:
        app.main(list(arguments), prog_name="crewlet")
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _forget_stdout()
        return OK
    except click.Abort:
        return _say("nothing was done", FAILED)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failed as failed:
        return _say(str(failed), failed.code)
    except CrewletError as error:
        return _say(str(error), exit_of(error))
    except OSError as error:
        return _say(str(error), FAILED)


def exit_of(error: CrewletError) -> int:
    """Refused where we will not, usage where the caller's input is wrong, else failed."""
    if error.code in _REFUSALS:
        return REFUSED
    return USAGE if error.blame == "caller" else FAILED


def _invoke(arguments: Sequence[str]) -> int:
    try:
        with app.make_context("crewlet", list(arguments)) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    return code if isinstance(code, int) else OK


def _say(sentence: str, code: int) -> int:
    click.echo(f"crewlet: {sentence}", err=True)
    return code


def _forget_stdout() -> None:
    """What is still buffered goes nowhere, rather than into a complaint at the very end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
