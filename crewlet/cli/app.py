"""The command `crewlet`: its nouns.

0 ok, 1 failed, 2 usage, 3 refused, 4 partial answer, 130 interrupted. A reader of our output
that goes away early (`| head -1`) has what it wanted: 0, and nothing on stderr.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import click

from crewlet.cli.acts import Ordered
from crewlet.cli.check import check
from crewlet.cli.console import OPERATING, SETTINGS
from crewlet.cli.running import run_in
from crewlet.cli.schema import schema
from crewlet.cli.shell import shell
from crewlet.cli.simulate import simulate
from crewlet.cli.up import up
from crewlet.cli.version import version

EPILOG: Final = """\b
First steps:
  crewlet up                        run the demo company, data in ./.crewlet
  crewlet send dev "Say hello"      give a seat something to do (another shell)
  crewlet events --follow           watch what happens
  crewlet shell                     look inside, and operate it
\b
Exit codes: 0 ok, 1 failed, 2 usage, 3 refused, 4 partial answer.
"""


@click.group(cls=Ordered, epilog=EPILOG, context_settings=SETTINGS)
def app() -> None:
    """Run companies of AI agents: every seat an actor with a durable mailbox."""


for _command in (up, check, schema, shell, *OPERATING, simulate, version):
    app.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    if "_CREWLET_COMPLETE" in os.environ:
        app.main(list(arguments), prog_name="crewlet")
    return run_in(app, arguments)
