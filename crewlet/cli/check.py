"""`crewlet check`: everything that is wrong with a company file, in one go."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from crewlet.cli import sink
from crewlet.cli.exits import FAILED, OK
from crewlet.cli.options import output_option
from crewlet.cli.output import Output
from crewlet.cli.table import Column
from crewlet.cli.terminal import visible

EPILOG = """\b
Examples:
  crewlet check acme.yaml
  crewlet check acme.yaml --node node.yaml
  crewlet check acme.yaml -o jsonl | jq .message
\b
Prints FILE:LINE:COLUMN: PATH: MESSAGE, a line a problem, as compilers do. With -o json or
jsonl the problems are all there is: a good file has none.
Exit codes: 0 the file is good, 1 it is not.
"""

_COLUMNS = tuple(map(Column, ("file", "line", "column", "path", "message")))


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--node",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="NODE.yaml",
    help="Check this file of a node's settings as well.",
)
@output_option
def check(file: Path, node: Path | None, out: Output) -> int:
    """Check a company file: all that is wrong with it.

    Nothing is started and nothing is changed. `${NAME}` is filled in from the environment,
    as `crewlet up` would.
    """
    from crewlet.company import check_company, check_node_settings

    problems = check_company(file, env=os.environ)
    if node is not None:
        problems += check_node_settings(node, env=os.environ)
    if out.format != "table":
        out.rows((msgspec.json.encode(problem) for problem in problems), _COLUMNS)
    elif problems:
        sink.write_text("".join(f"{visible(str(problem))}\n" for problem in problems))
    else:
        sink.write_text(f"{_summary(file)}\n")
    return FAILED if problems else OK


def _summary(file: Path) -> str:
    from crewlet.company import load_company

    company = load_company(file, env=os.environ)
    seats = _count(len(company.seats), "seat")
    agents = _count(len(company.agents()), "agent")
    units = _count(len([*company.all_units()]), "unit")
    return visible(f"{file} is good: {company.name}, {seats} ({agents}), {units}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
