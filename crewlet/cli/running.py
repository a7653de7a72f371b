"""Running one command line: what each way of failing means for the exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from crewlet.cli.exits import FAILED, OK, REFUSED, USAGE, Failed
from crewlet.errors import CrewletError

_REFUSALS: Final = frozenset({"node_refused", "broker_refused"})


def run_in(
    group: click.Group, arguments: Sequence[str], defaults: Mapping[str, Any] | None = None
) -> int:
    """Run one command line of `group` and return its exit code; click's own `main` has other
    codes. `defaults` are click's: by command, the values of what the line does not say."""
    try:
        code = _invoke(group, arguments, defaults)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _forget_stdout()
        return OK
    except click.Abort:
        if sys.stdin.isatty():
            click.echo(err=True)  # the question that was left stands on this line
        return say("nothing was done", FAILED)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failed as failed:
        return say(str(failed), failed.code)
    except CrewletError as error:
        return say(str(error), exit_of(error))
    except OSError as error:
        return say(str(error), FAILED)


def exit_of(error: CrewletError) -> int:
    """Refused where we will not, usage where the caller's input is wrong, else failed."""
    if error.code in _REFUSALS:
        return REFUSED
    return USAGE if error.blame == "caller" else FAILED


def say(sentence: str, code: int) -> int:
    """The sentence on standard error; the code is handed through."""
    click.echo(f"crewlet: {sentence}", err=True)
    return code


def _invoke(
    group: click.Group, arguments: Sequence[str], defaults: Mapping[str, Any] | None
) -> int:
    try:
        with group.make_context("crewlet", list(arguments), default_map=defaults) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    return code if isinstance(code, int) else OK


def _forget_stdout() -> None:
    """What is still buffered goes nowhere, rather than into a complaint at the very end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
