"""`crewlet run`: work that goes on after its turn, and what whoever does it says of it."""

from __future__ import annotations

import sys
from typing import Final

import click

from crewlet.cli.acts import DONE, Act, Args, group, handle
from crewlet.cli.table import Column

ROWS: Final = (
    Column("handle"),
    Column("run_id"),
    Column("state"),
    Column("holds"),
    Column("since"),
    Column("text", free=True),
)

EPILOG: Final = """\b
A handler that answers Suspend(run_id) leaves its work to a run: the seat takes nothing new until
whoever does the work says what became of it.
\b
Examples:
  crewlet run ls
  crewlet run complete dev build-17 "all green"
"""


def _run_id() -> click.Argument:
    return click.Argument(["run_id"], metavar="RUN")


def _text(name: str, *, required: bool = False) -> click.Argument:
    return click.Argument(
        ["text"], metavar=name, required=required, default=None if required else ""
    )


def _read(args: Args) -> Args:
    """`-` is standard input: a result may be longer than a command line."""
    return {**args, "text": sys.stdin.read().strip()} if args["text"] == "-" else args


ACTS: Final = (
    Act(
        words="run ls",
        about="List the runs of a seat, or of all seats.",
        more="Those that are over can be looked at for a day.",
        params=(click.Argument(["handle"], required=False, default=""),),
        columns=ROWS,
        examples="run ls\nrun ls dev -o json",
    ),
    Act(
        words="run show",
        about="Show one run whole: its turn, its question, how it ended.",
        params=(handle(), _run_id()),
        examples="run show dev build-17",
    ),
    Act(
        words="run complete",
        about="Say that a run is done, and with what result.",
        more="The result goes to the seat's inbox, into the conversation of the turn that was "
        "suspended; the seat goes on when no other run holds it. `-` reads standard input.",
        params=(handle(), _run_id(), _text("[RESULT]")),
        columns=DONE,
        prepared=_read,
        examples="run complete dev build-17 'all green'\n"
        "run complete dev build-17 -   what standard input says",
    ),
    Act(
        words="run fail",
        about="Say that a run will not be done, and why.",
        more="The seat is woken with the reason. A run that nobody works any more is ended so.",
        params=(handle(), _run_id(), _text("[REASON]")),
        columns=DONE,
        prepared=_read,
        examples="run fail dev build-17 'the machine is gone'",
    ),
    Act(
        words="run ask",
        about="Park a run on a question: its seat works meanwhile.",
        more="The first message of its conversation after the question is its answer, and is no "
        "turn of the seat. To put the question before people is up to you.",
        params=(handle(), _run_id(), _text("QUESTION", required=True)),
        columns=DONE,
        prepared=_read,
        examples="run ask dev build-17 'Which branch?'",
    ),
    Act(
        words="run take",
        about="Take the answer to a run's question; the run goes on.",
        more="Until it is taken it lies in the run, and is mail of the seat again if the run ends. "
        "Taking it once more shows it once more.",
        params=(handle(), _run_id()),
        examples="run take dev build-17",
    ),
)

run = group("run", "Long runs: look, and say what became of one.", ACTS, EPILOG)
