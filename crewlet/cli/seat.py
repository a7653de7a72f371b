"""`crewlet seat`: one seat, by rising consequence: look, brake, let go, give away, destroy."""

from __future__ import annotations

import sys
from typing import Final

import click

from crewlet.cli.acts import DONE, Act, Args, group, handle, node_id
from crewlet.cli.exits import REFUSED, USAGE, Failed


def _confirmed(args: Args) -> Args:
    """The handle, said again: by a flag, or by a person who is there to be asked."""
    wanted = args["handle"]
    if args["yes"] is None:
        if not sys.stdin.isatty():
            way = f"add --yes {wanted}"
            raise Failed(f"deleting asks for the handle again, and nobody is there: {way}", REFUSED)
        text = f"This destroys all mail of {wanted}. Its handle again"
        args = {**args, "yes": click.prompt(text, err=True, default="", show_default=False)}
    if args["yes"] != wanted:
        raise Failed(f"that is not {wanted}: nothing was done", USAGE)
    return args


def _reason() -> click.Argument:
    return click.Argument(["reason"], required=False, default="operator")


ACTS: Final = (
    Act(
        words="seat show",
        about="Show one seat whole.",
        more="Who works it, what it is doing, what holds it, and its mail.",
        params=(handle(),),
        examples="seat show dev\nseat show dev -o json",
    ),
    Act(
        words="seat hold",
        about="Take nothing new while a reason is held.",
        more="A turn that runs may finish. Holds have names, so that two people who hold a seat "
        "do not let it go for each other; a detach ends them.",
        params=(handle(), _reason()),
        columns=DONE,
        examples="seat hold dev\nseat hold dev 'new key'",
    ),
    Act(
        words="seat release",
        about="End one hold; mail flows when it was the last.",
        params=(handle(), _reason()),
        columns=DONE,
        examples="seat release dev\nseat release dev 'new key'",
    ),
    Act(
        words="seat quiesce",
        about="Take nothing new until unquiesce.",
        more="Undone at no cost, also by whatever else ends a rest; to keep it, hold or pause.",
        params=(handle(),),
        columns=DONE,
        examples="seat quiesce dev",
    ),
    Act(
        words="seat unquiesce",
        about="Undo quiesce; lifts no hold.",
        params=(handle(),),
        columns=DONE,
        examples="seat unquiesce dev",
    ),
    Act(
        words="seat detach",
        about="Let go of the seat's mailboxes; the mail stays.",
        more="No turn starts on this node after it; one that runs still counts.",
        params=(handle(),),
        columns=DONE,
        examples="seat detach dev",
    ),
    Act(
        words="seat attach",
        about="Take up a seat that was detached or deleted.",
        params=(handle(),),
        columns=DONE,
        examples="seat attach dev",
    ),
    Act(
        words="seat pause",
        about="Let a seat rest, on whatever node, until resume.",
        more="It outlives nodes: whoever works the seat next rests as well. Each change is "
        "published once, as seat_paused and seat_resumed. With --stop-running, also later, the "
        "turn that runs ends at its next checkpoint, and what woke it counts as worked.",
        params=(
            handle(),
            click.Option(["--stop-running"], is_flag=True, help="End the turn that runs, too."),
        ),
        columns=DONE,
        examples="seat pause dev\nseat pause dev --stop-running",
    ),
    Act(
        words="seat resume",
        about="Let a paused seat go on.",
        params=(handle(),),
        columns=DONE,
        examples="seat resume dev",
    ),
    Act(
        words="seat move",
        about="Have another node work the seat.",
        more="Answers at once; a turn that runs ends where it is, and until then another node may "
        "be named.",
        params=(handle(), node_id(required=True)),
        columns=DONE,
        examples="seat move dev n2",
    ),
    Act(
        words="seat delete",
        about="Destroy the seat's mailboxes with all their mail.",
        more="There is no way back. Asks for the handle again; in scripts --yes says it.",
        params=(
            handle(),
            click.Option(["--yes"], metavar="HANDLE", help="The handle again: do not ask."),
        ),
        columns=DONE,
        prepared=_confirmed,
        examples="seat delete dev\nseat delete dev --yes dev",
    ),
)

EPILOG: Final = "`crewlet seats` lists them all, `crewlet why HANDLE` says what is in one's way."

seat = group("seat", "One seat: look, brake, let go, give away, destroy.", ACTS, EPILOG)
