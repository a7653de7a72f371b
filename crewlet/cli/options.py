"""The options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from crewlet.cli.output import FORMATS, Output

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_DATA: Final = Path(".crewlet")

ON: Final = "crewlet.on"
"""Where a command line keeps the node that it named."""


def output_option(function: F) -> F:
    """`-o`; the command gets an `Output` named `out`."""
    return click.option(
        "-o",
        "--output",
        "out",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        callback=lambda context, option, value: Output(value),
        help="How to print: columns, one JSON document, or one JSON object a line.",
    )(function)


def data_option(function: F) -> F:
    """`--data`: the folder of a node, and with it which node is meant."""
    return click.option(
        "--data",
        type=click.Path(file_okay=False, readable=False, path_type=Path),
        default=DEFAULT_DATA,
        envvar="CREWLET_DATA",
        show_default=True,
        show_envvar=True,
        metavar="DIR",
        help="The node's data folder.",
    )(function)


def node_option(function: F) -> F:
    """`--data`, and `--on`: another node of the fleet answers, by way of the one that runs on
    the folder. It is for all that the command asks (crewlet.cli.remote), and no argument."""

    def keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
        context.meta[ON] = value

    return data_option(
        click.option(
            "--on",
            envvar="CREWLET_ON",
            metavar="NODE",
            expose_value=False,
            callback=keep,
            help="The node of the fleet that answers; the one on the folder, unless told.",
        )(function)
    )
