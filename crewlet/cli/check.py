"""`crewlet check`: everything that is wrong with a company file, in one go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from crewlet.cli import sink
from crewlet.cli.exits import FAILED, OK
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode
from crewlet.cli.table import Column
from crewlet.cli.terminal import visible

if TYPE_CHECKING:
    from crewlet.company.problems import Problem

EPILOG = """\b
Examples:
  crewlet check acme.yaml
  crewlet check acme.yaml -o jsonl | jq .message
\b
Prints FILE:LINE:COLUMN: PATH: MESSAGE, a line a problem, as compilers do.
Exit codes: 0 the file is good, 1 it is not.
"""

_COLUMNS = tuple(map(Column, ("file", "line", "column", "path", "message")))


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option
def check(file: Path, out: Output) -> int:
    """Say whether a company file is good, and if not, all that is wrong with it.

    Nothing is started and nothing is changed. `${NAME}` is filled in from the environment,
    as `crewlet up` would.
    """
    from crewlet.company import check_company

    problems = check_company(file, env=os.environ)
    if problems:
        _refuse(problems, out)
        return FAILED
    _approve(file, out)
    return OK


def _refuse(problems: list[Problem], out: Output) -> None:
    if out.format == "table":
        sink.write_text("".join(f"{visible(str(problem))}\n" for problem in problems))
    else:
        out.rows((msgspec.json.encode(problem) for problem in problems), _COLUMNS)


def _approve(file: Path, out: Output) -> None:
    from crewlet.company import load_company

    company = load_company(file, env=os.environ)
    seats, agents, units = len(company.seats), len(company.agents()), len([*company.all_units()])
    if out.format == "table":
        sink.write_text(
            f"{visible(str(file))} is good: {visible(company.name)}, "
            f"{_count(seats, 'seat')} ({_count(agents, 'agent')}), {_count(units, 'unit')}\n"
        )
    elif out.format == "json":
        out.one(encode({"company": company.name, "seats": seats, "agents": agents, "units": units}))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
