"""`crewlet apply`: a company file becomes the revision that every node works by."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from crewlet.cli import sink
from crewlet.cli.exits import OK, USAGE, Failed, of_acts
from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output, encode
from crewlet.cli.remote import ask
from crewlet.cli.table import cell, pairs
from crewlet.cli.terminal import visible

EPILOG: Final = """\b
Examples:
  crewlet apply acme.yaml --dry-run
  crewlet apply acme.yaml --wait
  crewlet apply acme.yaml -o json
\b
The file is read here, and checked by the node with the variables of its own environment: what
`crewlet check` refuses is refused, and nothing is changed. Nodes take it from the store, with
their next event; no running turn is waited for. With --wait the answer has a row for each live
node, and the exit code says how many of them work by it: 0 all, 4 some, 3 none.
"""

WAIT_S: Final = 60.0
"""A node that heard no nudge looks within 18 s, and tries three times what it cannot take."""

LOOK_S: Final = 0.2

LIVE: Final = ("serving", "draining", "drained", "leaving")

Nodes = list[dict[str, Any]]


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--wait", is_flag=True, help="Until every live node works by it, or says why not.")
@click.option(
    "--timeout",
    "within_s",
    type=click.FloatRange(0, 3600),
    default=WAIT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long --wait waits.",
)
@node_option
@output_option
def apply(file: Path, dry_run: bool, wait: bool, within_s: float, data: Path, out: Output) -> int:
    """Make a company file the one that every node works by."""
    asked = {"text": _read(file), "name": str(file)}
    (answer,) = ask(data, "revision.try" if dry_run else "apply", asked)
    row: dict[str, Any] = json.loads(answer)
    if not wait or dry_run:
        _print(out, row)
        return OK
    row["nodes"] = nodes = _reported(data, int(row["revision"]), within_s)
    _print(out, row)
    return of_acts(sum(node["state"] == "applied" for node in nodes), len(nodes))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Failed(f"{file} can't be read: {error.strerror or error}", USAGE) from None
    except ValueError:
        raise Failed(f"{file} is no UTF-8 text", USAGE) from None


def _reported(data: Path, number: int, within_s: float) -> Nodes:
    """What each live node says of the revision, once all have said something or time is up."""
    until, pause = time.monotonic() + within_s, threading.Event()
    while True:
        rows = [json.loads(row) for row in ask(data, "node.ls")]
        nodes = [_of(row, number) for row in rows if row["state"] in LIVE]
        if all(node["state"] != "waiting" for node in nodes) or time.monotonic() >= until:
            return nodes
        pause.wait(LOOK_S)


def _of(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A later revision than ours is as good: somebody applied one meanwhile."""
    behind = str(row.get("behind") or "")
    if (row.get("revision") or 0) >= number:
        state = "applied"
    else:
        state = "refused" if behind else "waiting"
    return {"node": row["id"], "revision": row.get("revision"), "state": state, "note": behind}


def _print(out: Output, row: Mapping[str, Any]) -> None:
    """In columns for a person, who is shown nothing that says nothing; else the whole object."""
    if out.format != "table":
        out.one(encode(row))
        return
    said = {key: value for key, value in row.items() if value not in ([], "") and key != "nodes"}
    sink.write_text(pairs(said))
    sink.write_text("".join(_lines(row.get("nodes", ()))))


def _lines(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for node in nodes:
        words = (node["node"], node["state"], node["note"])
        yield "  ".join(visible(cell(word)) for word in words if word) + "\n"
