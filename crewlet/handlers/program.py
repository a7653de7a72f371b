"""The program of a command handler: where it is, and what environment it gets."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from crewlet.errors import ConfigError
from crewlet.handlers.outcome_file import VARIABLE as OUTCOME
from crewlet.turn import Turn

log = structlog.get_logger()

_OURS: Final = re.compile(r"CREWLET_.*(SECRET|TOKEN|PASSWORD|CREDENTIALS?|KEY)")
"""The company's secrets: they are for the edges of the node, never for a seat."""


def checked_program(command: Sequence[str], folder: Path | None) -> None:
    """Refuse (ConfigError) an argv that can't be run.

    A program given as a path must be there. A bare name may be installed later: its absence
    is logged, and each turn is nak'ed with the reason until then.
    """
    program = command[0]
    if not program or any("\0" in argument for argument in command):
        raise ConfigError("handler command: an argument is empty or holds a NUL byte")
    if "/" in program:
        path = _below(folder, program)
        if not path.is_file() or not os.access(path, os.X_OK):
            raise ConfigError(f"handler command: {path} is not an executable file")
    elif shutil.which(program) is None:
        log.warning("handler_program_missing", program=program)


def argv(command: Sequence[str], folder: Path | None) -> list[str]:
    """The argv to run: a relative path is one below `folder`, wherever the node runs."""
    program = command[0]
    if "/" in program:
        program = str(_below(folder, program))
    return [program, *command[1:]]


def environment(
    turn: Turn, inherited: Mapping[str, str], outcome: Path, secrets: Collection[str] = ()
) -> dict[str, str]:
    """The node's environment without the company's secrets, and the turn's own variables;
    `outcome` is where the command may state one.

    Dropped is what is named like a secret of ours, and what holds one of `secrets`, whatever
    its name: a company file may take its secret from any variable.
    """
    kept = {
        name: value
        for name, value in inherited.items()
        if not _OURS.fullmatch(name) and not any(secret and secret in value for secret in secrets)
    }
    kept.pop("TRACEPARENT", None)
    kept["CREWLET_TURN_ID"] = turn.turn_id
    kept["CREWLET_SEAT"] = turn.seat.handle
    kept[OUTCOME] = str(outcome)
    if turn.desk is not None and turn.desk.data is not None:
        kept["CREWLET_DATA"] = str(turn.desk.data.absolute())
    if turn.traceparent:
        kept["TRACEPARENT"] = turn.traceparent
    return kept


def _below(folder: Path | None, program: str) -> Path:
    return ((folder or Path.cwd()) / program).absolute()
