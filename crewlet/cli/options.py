"""The options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from crewlet.cli.output import FORMATS, Output

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_DATA: Final = Path(".crewlet")


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
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_DATA,
        envvar="CREWLET_DATA",
        show_default=True,
        show_envvar=True,
        metavar="DIR",
        help="The node's data folder.",
    )(function)
