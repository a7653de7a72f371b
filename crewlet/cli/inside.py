"""What is inside a node: `tree`, `ps`, `consumer ls`, `inflight`, `inbox peek`, `why`, `trace`,
`tell`."""

from __future__ import annotations

from typing import Final

import click

from crewlet.cli.acts import DONE, Act, group, handle
from crewlet.cli.table import Column, Row

COMMANDS: Final = ("describe", "quiesce", "unquiesce", "hold", "lift")

CONSUMERS: Final = (
    Column("consumer"),
    Column("box"),
    Column("state"),
    Column("held"),
    Column("running"),
)


def _indented(row: Row) -> Row:
    level = row.get("level")
    indent = level if isinstance(level, int) else 0
    return {**row, "name": "  " * indent + str(row.get("name"))}


def _stepped(row: Row) -> Row:
    effects = row.get("effects")
    words = ", ".join(map(str, effects)) if isinstance(effects, list) else ""
    missed = row.get("missed")
    return {**row, "effects": words, "given": f"({missed} missed)" if missed else row.get("given")}


PLAIN: Final = (
    Act(
        words="tree",
        about="Show the actors of a node, parents before children.",
        more="DEPTH is the messages that wait for an actor, EFFECTS what it waits for outside.",
        columns=(
            Column("name", "actor"),
            Column("kind"),
            Column("state"),
            Column("depth"),
            Column("restarts"),
            Column("effects"),
            Column("timers"),
        ),
        shown=_indented,
        examples="tree\ntree -o jsonl | jq 'select(.restarts > 0)'",
    ),
    Act(
        words="ps",
        about="List the turns that run on a node.",
        columns=(
            Column("seat"),
            Column("state"),
            Column("for_s"),
            Column("turn_id"),
            Column("conversation"),
            Column("overdue"),
        ),
        examples="ps\nps --on n2",
    ),
    Act(
        words="inflight",
        about="List the mail that a node was handed and has not settled.",
        columns=(
            Column("handle"),
            Column("position"),
            Column("count"),
            Column("held_s"),
            Column("topic"),
        ),
        examples="inflight",
    ),
    Act(
        words="why",
        about="Say why a seat is not working: first the reason that matters.",
        more="Its brakes, its owner, its mailbox, its turn, and its oldest mail.",
        params=(handle(),),
        columns=(Column("code", "why"), Column("text", "in words")),
        examples="why dev\nwhy dev -o json | jq -r '.[0].code'",
    ),
    Act(
        words="tell",
        about="Tell a consumer one of a few things by hand.",
        more="CONSUMER is a seat, or the router. All of it can be undone.",
        params=(
            click.Argument(["consumer"]),
            click.Argument(["command"], type=click.Choice(COMMANDS)),
            click.Option(["--box"], default="", help="inbox (else), control or reflect."),
            click.Option(["--reason"], default="operator", help="The name of a hold or a lift."),
        ),
        columns=CONSUMERS,
        examples="tell router quiesce\ntell dev hold --box reflect --reason slow",
    ),
)

CONSUMER: Final = (
    Act(
        words="consumer ls",
        about="List what a node takes mail from, and how each stands.",
        columns=CONSUMERS,
        examples="consumer ls\nconsumer ls -o jsonl | jq 'select(.attached | not)'",
    ),
)

INBOX: Final = (
    Act(
        words="inbox peek",
        about="Look at the oldest mail of a seat, and leave it there.",
        more="Nothing is handed out or counted by it. HANDED_OUT was tried at least once.",
        params=(
            handle(),
            click.Argument(
                ["most"], type=click.IntRange(1, 100), required=False, default=10, metavar="[N]"
            ),
            click.Option(["--whole"], is_flag=True, help="With the events themselves."),
        ),
        columns=(
            Column("position"),
            Column("waits_s"),
            Column("handed_out"),
            Column("type"),
            Column("event_id"),
            Column("size"),
            Column("summary", free=True),
        ),
        examples="inbox peek dev\ninbox peek dev 1 --whole -o json",
    ),
)

TRACE: Final = (
    Act(
        words="trace on",
        about="Watch the steps of a seat as they happen, until Ctrl-C or trace off.",
        more="What came to each of its boxes, the states before and after, what it asked for.",
        params=(handle(),),
        columns=(
            Column("at", "time", least=27),
            Column("box", least=7),
            Column("given", least=11),
            Column("before", least=11),
            Column("after", least=11),
            Column("effects"),
        ),
        shown=_stepped,
        follows=True,
        examples="trace on dev\ntrace on dev -o jsonl",
    ),
    Act(
        words="trace off",
        about="End all traces of a seat, whoever watches.",
        params=(handle(),),
        columns=DONE,
        examples="trace off dev",
    ),
)

plain: Final = tuple(act.command() for act in PLAIN)
consumer = group("consumer", "What a node takes mail from.", CONSUMER)
inbox = group("inbox", "The mail of a seat.", INBOX)
trace = group("trace", "The steps of a seat, live.", TRACE)
