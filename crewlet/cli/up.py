"""`crewlet up`: run a node in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from crewlet.cli.early import stop_was_asked
from crewlet.cli.options import data_option, output_option
from crewlet.cli.output import Output, encode

EPILOG = """\b
Examples:
  crewlet up                                  the demo company, data in ./.crewlet
  crewlet up acme.yaml --data /var/lib/acme   your own
  crewlet up acme.yaml --node node.yaml       with the node's own settings
\b
The first Ctrl-C (or SIGTERM) drains: no new turn starts, running ones may finish, everything
else stays in its mailbox. A second one stops at once; the mail is safe there too.
\b
A company that was applied since (`crewlet apply`) runs, and not the file; --apply puts the file in
its place, for the whole fleet.
\b
Exit codes: 0 stopped as asked, 1 failed, 2 a file or an option is wrong, 3 refused (another
process holds the data folder, for one).
"""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("company", required=False, type=_FILE, metavar="[COMPANY.yaml]")
@click.option("--node", type=_FILE, metavar="NODE.yaml", help="The settings of this node.")
@data_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Where the web edge listens; 0 takes any free port.",
)
@click.option(
    "--apply", is_flag=True, help="Put the file in the place of the company's active revision."
)
@click.option("--quiet", is_flag=True, help="Print nothing but what goes wrong.")
@output_option
def up(
    company: Path | None,
    node: Path | None,
    data: Path,
    port: int | None,
    apply: bool,
    quiet: bool,
    out: Output,
) -> int:
    """Run a company on this machine until you stop it.

    Without a file the demo company runs. With -o json or jsonl one object with the process
    id and the folder is printed first, and nothing after it.
    """
    if out.format != "table":
        out.one(encode({"pid": os.getpid(), "data": str(data.resolve())}))
        quiet = True
    from crewlet.node import run_foreground

    if (stopped := stop_was_asked()) is not None:
        return stopped
    return run_foreground(company, node, data, port, quiet, apply=apply)
