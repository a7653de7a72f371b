"""Operators' commands as a table: one line of it is a verb of the shell and a command of
`crewlet`, with its help, an example, and how its answer looks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from crewlet.cli.options import node_option, output_option
from crewlet.cli.output import Output, encode
from crewlet.cli.remote import ask
from crewlet.cli.table import Column, Row

Args: TypeAlias = dict[str, Any]

DONE: Final = (
    Column("target"),
    Column("node"),
    Column("changed"),
    Column("note"),
)
"""The answer of an act."""


def _as_given(args: Args) -> Args:
    return args


@dataclass(frozen=True, kw_only=True)
class Act:
    """`words` are the command, and joined by a dot the node's verb. The parameters are named as
    the node names them. Without `columns` the answer is one object. `prepared` may ask a person
    something first, `shown` makes a row of a table out of a row of the node, and `then` comes
    after the answer."""

    words: str
    about: str
    examples: str
    more: str = ""
    params: tuple[click.Parameter, ...] = ()
    columns: Sequence[Column] = ()
    follows: bool = False
    prepared: Callable[[Args], Args] = _as_given
    shown: Callable[[Row], Row] | None = None
    then: Callable[[Path, Args], None] | None = None

    @property
    def verb(self) -> str:
        return self.words.replace(" ", ".")

    @property
    def name(self) -> str:
        return self.words.rpartition(" ")[2]

    def command(self) -> click.Command:
        """The same as a command of click."""

        @node_option
        @output_option
        def callback(data: Path, out: Output, **args: Any) -> None:
            self.run(data, out, args)

        lines = "\n".join(f"  crewlet {line}" for line in self.examples.strip().splitlines())
        return click.command(
            self.name,
            help=f"{self.about}\n\n{self.more}".strip(),
            short_help=self.about,
            epilog=f"\b\nExamples:\n{lines}\n",
            params=list(self.params),
        )(callback)

    def run(self, data: Path, out: Output, args: Args) -> None:
        args = self.prepared(args)
        asked = {key: value for key, value in args.items() if not key.startswith("_")}
        rows = ask(data, self.verb, asked, follow=self.follows)
        if out.format == "table" and self.shown is not None:
            rows = _shown(rows, self.shown)
        if not self.columns:
            for row in rows:
                out.one(row)
        elif self.follows:
            out.stream(rows, self.columns)
        else:
            out.rows(rows, self.columns)
        if self.then is not None:
            self.then(data, args)


class Ordered(click.Group):
    """Its commands in the order in which they are given, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def group(name: str, about: str, acts: Iterable[Act], epilog: str = "") -> click.Group:
    """A noun and its verbs."""
    made = Ordered(name, help=about, short_help=about, epilog=epilog or None)
    for act in acts:
        made.add_command(act.command())
    return made


def handle() -> click.Argument:
    """A seat; completed from the company."""
    return click.Argument(["handle"])


def node_id(*, required: bool) -> click.Argument:
    """A node; completed from the fleet. Without one where one may be left out: the one that is
    asked. A variable that is empty leaves nothing out."""
    return click.Argument(["node"], required=required, callback=_node)


def _node(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value == "":
        raise click.BadParameter("an empty word names no node")
    return value or ""


def _shown(rows: Iterable[bytes], shown: Callable[[Row], Row]) -> Iterator[bytes]:
    for row in rows:
        decoded: Mapping[str, Any] = json.loads(row)
        yield encode(shown(decoded))
