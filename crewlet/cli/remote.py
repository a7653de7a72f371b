"""Asking the node that runs on a data folder, and what to say when it can't answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from crewlet.cli import sink
from crewlet.cli.exits import FAILED, REFUSED, Failed
from crewlet.cli.options import DEFAULT_DATA, ON

NAMED: Final = "--data DIR, or CREWLET_DATA"


def ask(
    data: Path, verb: str, args: Mapping[str, object] | None = None, *, follow: bool = False
) -> Iterator[bytes]:
    """The rows of the node's answer, as JSON bytes. Raises Failed with a sentence.

    With `--on` the node of the folder has that other node answer. `follow` waits for rows
    without end, and leaves (BrokenPipeError) as soon as whoever reads standard output has gone.
    """
    # Imported here: a command that asks no node need not load the node's packages.
    from actors.admin import AdminClient, CallFailed, NoAnswer, NotRunning

    verb, args = _meant(verb, args or {}, follow=follow)
    output = sink.descriptor() if follow else None
    try:
        yield from AdminClient(data).call_raw(verb, args, endless=follow, output=output)
    except NotRunning:
        raise Failed(not_running(data), REFUSED) from None
    except CallFailed as error:
        raise Failed(error.failure.message, error.failure.exit) from None
    except NoAnswer as error:
        raise Failed(f"the node on {data} gave no whole answer: {error}", FAILED) from None
    except ValueError as error:
        raise Failed(str(error), FAILED) from None


def _meant(
    verb: str, args: Mapping[str, object], *, follow: bool
) -> tuple[str, Mapping[str, object]]:
    context = click.get_current_context(silent=True)
    node = None if context is None else context.meta.get(ON)
    if not node:
        return verb, args
    return "on.follow" if follow else "on", {"node": node, "verb": verb, "args": args}


def not_running(data: Path) -> str:
    """Names the folder that was looked at, the command that would run a node there, and how another
    folder is named: a node may well run, and this be the wrong place to look."""
    start = "crewlet up"
    if data != DEFAULT_DATA:
        start += f" --data {shlex.quote(str(data))}"
    return f"no crewlet node runs on {data}; start one with `{start}`, or name its folder: {NAMED}"
