"""`crewlet top`: a node at a glance, live in a terminal and once everywhere else."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crewlet.cli import sink
from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output
from crewlet.cli.remote import ask
from crewlet.cli.table import Column, cell, plain
from crewlet.cli.terminal import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

EPILOG = """\b
Examples:
  crewlet top
  crewlet top --every 5 --on n2
  crewlet top --once -o json | jq .waiting
"""

BUSIEST = (
    Column("handle"),
    Column("owner"),
    Column("state"),
    Column("waiting"),
    Column("in_flight"),
    Column("turns"),
    Column("turns_per_minute", "a minute"),
    Column("waker", "woken by"),
)


@click.command(epilog=EPILOG)
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Look once, also in a terminal.")
@node_option
@output_option
def top(every: float, once: bool, data: Path, out: Output) -> None:
    """Watch a node: its load, its seats, and the busiest of them.

    Live until Ctrl-C; into a pipe or a file, and with -o json, it is one look.
    """
    if out.format != "table":
        out.one(_look(data, 10))
    elif once or not sink.rich_here():
        look = json.loads(_look(data, 10))
        sink.write_text("\n".join(map(visible, _heads(look))) + "\n\n")
        sink.write_text(plain(look["busiest"], BUSIEST))
    else:
        _live(data, every)


def _look(data: Path, most: int) -> bytes:
    (row,) = ask(data, "top", {"most": most})
    return row


def _live(data: Path, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console, pause = Console(highlight=False), threading.Event()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(_drawn(json.loads(_look(data, console.height - 5))), refresh=True)
                pause.wait(every)
        except (KeyboardInterrupt, SystemExit):
            return  # whoever looks long enough leaves: that is no failure


def _heads(look: Mapping[str, Any]) -> tuple[str, str]:
    """The node in one line, its seats in another."""
    known = look["waiting"] is not None
    mail = f"waiting {look['waiting']}  in flight {look['in_flight']}"
    return (
        f"{look['node']}  cpu {look['cpu_percent']:.0f} %  rss {look['rss_mib']:.0f} MiB  "
        f"running {look['running']}  {mail if known else 'the broker does not answer'}",
        f"{look['seats']} seats, {look['here']} of them here, {look['busy']} busy",
    )


def _drawn(look: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head, seats = _heads(look)
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column in BUSIEST:
        table.add_column(column.title, overflow="ellipsis", no_wrap=True)
    for row in look["busiest"]:
        table.add_row(*(Text(visible(cell(row.get(column.key)))) for column in BUSIEST))
    return Group(Text(visible(head), style="bold"), Text(seats), Text(), table)
