"""`crewlet node` and `crewlet lease`: who is there, who holds what, and a node out of work."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Final

import click

from crewlet.cli.acts import Act, Args, group, node_id
from crewlet.cli.options import ON
from crewlet.cli.remote import ask
from crewlet.cli.table import Column, Row

TURN: Final = "CREWLET_TURN_ID"
"""Of a command that a turn runs: whoever waits for turns does not wait for itself."""

LOOK_S: Final = 0.2

STATE: Final = (Column("node"), Column("state"), Column("note"))


def _wait(data: Path, args: Args) -> None:
    """Until no turn runs there but the one that asks."""
    if not args["_wait"]:
        return
    own, pause = os.environ.get(TURN, ""), threading.Event()
    if args["node"]:
        click.get_current_context().meta[ON] = args["node"]
    while any(json.loads(row).get("turn_id") != own for row in ask(data, "ps")):
        pause.wait(LOOK_S)


def _offered(row: Row) -> Row:
    """Roles that are not stated are all of them."""
    return {**row, "roles": row.get("roles") or "all"}


NODES: Final = (
    Act(
        words="node ls",
        about="List the nodes of the fleet.",
        columns=(
            Column("id", "node"),
            Column("state"),
            Column("seats"),
            Column("running"),
            Column("roles"),
            Column("labels"),
            Column("session"),
            Column("revision"),
            Column("note"),
        ),
        shown=_offered,
        examples="node ls\nnode ls -o json",
    ),
    Act(
        words="node drain",
        about="Take a node out of work; its process stays.",
        more="Its running turns end, other nodes take its seats, and it takes none until undrain. "
        "A node that is alone keeps its seats at rest. Answers at once; with --wait when no turn "
        "runs there any more - but for the turn that asks, where one does. `crewlet drain` "
        "stops the process.",
        params=(
            node_id(required=False),
            click.Option(["--wait", "_wait"], is_flag=True, help="Until no other turn runs there."),
        ),
        columns=STATE,
        then=_wait,
        examples="node drain\nnode drain n2 --wait",
    ),
    Act(
        words="node undrain",
        about="Let a drained node work again.",
        params=(node_id(required=False),),
        columns=STATE,
        examples="node undrain n2",
    ),
)

LABELS: Final = Act(
    words="node label",
    about="Change what a node offers, while it runs.",
    more="NAME=VALUE sets a label, NAME= takes it away; the others stay. Seats come and go by it, "
    "as `placement` in the company file asks. The node's file has the last word at the next start.",
    params=(click.Argument(["labels"], nargs=-1, required=True),),
    columns=(*STATE, Column("labels")),
    prepared=lambda args: {"labels": _labels(args["labels"])},
    examples="node label zone=west\nnode label gpu= --on n2",
)


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.UsageError("a label is written NAME=VALUE, or NAME= to take it away")
    return {name: value for name, _, value in pairs}


LEASES: Final = (
    Act(
        words="lease ls",
        about="List who holds which seat, node and duty.",
        columns=(
            Column("resource"),
            Column("owner"),
            Column("epoch"),
            Column("session"),
            Column("state"),
            Column("note"),
        ),
        examples="lease ls\nlease ls -o jsonl | grep seat:dev",
    ),
)

node = group("node", "The nodes of the fleet.", (*NODES, LABELS))
lease = group("lease", "Who holds what, and since which epoch.", LEASES)
