"""`crewlet schema`: the shapes of files, turns and events, as JSON schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import click
import msgspec

from crewlet.cli import sink
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode

EPILOG = """\b
Examples:
  crewlet schema > company.schema.json      # for your editor: completion and checks in YAML
  crewlet schema turn                       # what a command handler reads on its stdin
"""

Schema = dict[str, Any]


def _company() -> Schema:
    from crewlet.company import company_schema

    return dict(company_schema())


def _node() -> Schema:
    from crewlet.company import node_schema

    return dict(node_schema())


def _turn() -> Schema:
    from crewlet.turn import Turn

    return msgspec.json.schema(Turn)


def _event() -> Schema:
    """The envelope as it stands on the wire: the trace and the body lie flat beside the rest."""
    from crewlet.events.envelope import Event

    schema = msgspec.json.schema(Event)
    envelope: Schema = schema["$defs"].pop("Event")
    trace: Schema = schema["$defs"].pop("Trace")
    properties: Schema = envelope["properties"]
    del properties["body"], properties["trace"]
    properties.update(trace["properties"])
    envelope["required"] = [name for name in envelope["required"] if name != "trace"]
    envelope["additionalProperties"] = True
    envelope["description"] = "A record of what happened; keys of its own type lie beside these."
    return envelope


_SCHEMAS: Final[Mapping[str, Callable[[], Schema]]] = {
    "company": _company,
    "node": _node,
    "turn": _turn,
    "event": _event,
}


@click.command(epilog=EPILOG)
@click.argument("what", type=click.Choice(tuple(_SCHEMAS)), default="company")
@output_option
def schema(what: str, out: Output) -> None:
    """Print the JSON schema of a file, turn or event.

    The shapes grow by new keys only: a reader skips what it does not know.
    """
    document = encode(_SCHEMAS[what]())
    if out.format == "table":
        sink.write(msgspec.json.format(document, indent=2) + b"\n")
    else:
        out.one(document)
