"""`crewlet simulate`: a fleet with everything that can go wrong, in virtual time, from a seed."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from crewlet.cli import simulated, sink
from crewlet.cli.exits import FAILED, INTERRUPTED, OK
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode
from crewlet.cli.terminal import is_rich

if TYPE_CHECKING:
    from actors.simulation.run import Outcome
    from crewlet.testing.simulated.campaign import Summary, Task

EPILOG = """\b
Examples:
  crewlet simulate --seed 17                       # one seed
  crewlet simulate --seeds 1..500 --jobs 2         # many, on two cores
  crewlet simulate --seed 17 --trace t.jsonl       # every record of it
  jq -c 'select(.seat == "s3")' t.jsonl            # ... and what befell one seat
  crewlet simulate --seeds 1..50 -o json | jq .sometimes
\b
Profiles: swarm, a bit of everything; lease, nodes that die, sleep and are cut off; mail,
redeliveries, holds and broken acknowledgements; poison, messages that no handler survives;
moves, lease with an operator who moves seats all the time.
\b
The same code, seed, profile and minutes are the same run, record for record. A broken promise is
named by its number in docs/guide/simulation.md, with the seed, the commit, the virtual time and
the step, and the line that plays it again. What did not happen was not shown: the rare events
that were met are counted, and the others named.
\b
Ctrl-C ends it after the seeds that are being played, with what came of those that were.
Exit codes: 0 every promise was kept, 1 one was not (or 10,000 seeds and more have hardly met
some rare event), 2 usage, 130 interrupted.
"""

PROFILES: Final = ("swarm", "lease", "mail", "poison", "moves")
"""As actors.simulation.faults has them, which is loaded when it is needed."""

SHRUNK: Final = 3
"""Of so many seeds the fewest decisions are looked for: it takes up to a minute each."""

MUST_MEET: Final = 10_000
"""A campaign of so many seeds has failed where it hardly met one of the rare events."""

_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")


class SeedRange(click.ParamType):  # type: ignore[type-arg] # generic in newer clicks only
    """`A..B`, both of them included."""

    name = "A..B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        if isinstance(value, range):
            return value
        found = _RANGE.fullmatch(str(value))
        if found is None or int(found[1]) > int(found[2]):
            self.fail(f"{value!r} is no range of seeds: write A..B, 1..500 for example", param, ctx)
        return range(int(found[1]), int(found[2]) + 1)


class Minutes(click.FloatRange):
    """Between its bounds, which `nan` is not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        minutes = float(super().convert(value, param, ctx))
        if math.isnan(minutes):
            self.fail(f"{value!r} is no number of minutes", param, ctx)
        return minutes


def _writable(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Asked before an hour of seeds is played, not after it."""
    if path is None:
        return None
    try:
        path.open("ab").close()
    except OSError as error:
        raise click.BadParameter(f"{str(path)!r} can't be written: {error.strerror}") from error
    return path


@click.command(epilog=EPILOG)
@click.option("--seed", type=click.IntRange(min=0), help="Play this seed.")
@click.option("--seeds", type=SeedRange(), help="Play these, from A to B.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes to use."
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="swarm",
    show_default=True,
    help="Which faults are the likely ones.",
)
@click.option(
    "--minutes",
    type=Minutes(min=0.1, max=60.0),
    default=5.0,
    show_default=True,
    help="Virtual minutes in which things go wrong.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_writable,
    help="Write every record of a seed here, a JSON object a line: of the first that breaks "
    "something, else of the last.",
)
@click.option(
    "--shrink/--no-shrink",
    default=True,
    show_default=True,
    help=f"Look for the fewest faults that still break it, for the first {SHRUNK} seeds that do.",
)
@output_option
def simulate(
    seed: int | None,
    seeds: range | None,
    jobs: int,
    profile: str,
    minutes: float,
    trace: Path | None,
    shrink: bool,
    out: Output,
) -> int:
    """Play a fleet on a broker that fails, and check every promise.

    Each seed boots some nodes, lets things go wrong for a while, heals everything, and then
    watches the fleet recover. Virtual time: a seed takes a second or two.
    """
    from crewlet.testing.simulated.campaign import Task, play

    if (seed is None) == (seeds is None):
        raise click.UsageError("say --seed N or --seeds A..B, one of them")
    wanted = seeds if seeds is not None else range(seed or 0, (seed or 0) + 1)
    with simulated.stoppable() as stop:
        tasks = [Task(one, profile, minutes * 60.0) for one in wanted]  # type: ignore[arg-type]
        summary, broken = _play(tasks, jobs, stop)
        found = _found(broken, tasks, stop) if shrink else {}
        if trace is not None and not stop.asked:
            first = broken[0].seed if broken else tasks[-1].seed
            with trace.open("wb") as file:
                play(_task(tasks, first), trace=file)
    _show(summary, broken, found, tasks, out)
    if summary.violations:
        return FAILED
    return _unbroken(summary, stop)


def _unbroken(summary: Summary, stop: simulated.Stop) -> int:
    """Nothing was broken: whether that says anything."""
    if stop.asked:
        click.echo(f"crewlet: stopped after {simulated.counted(summary.seeds, 'seed')}", err=True)
        return INTERRUPTED
    return FAILED if summary.unseen and summary.seeds >= MUST_MEET else OK


def _task(tasks: list[Task], seed: int) -> Task:
    return next(task for task in tasks if task.seed == seed)


def _play(tasks: list[Task], jobs: int, stop: simulated.Stop) -> tuple[Summary, list[Outcome]]:
    """All of them, or those before the stop; and those that broke something, with their last
    records."""
    from crewlet.testing.simulated.campaign import Campaign, outcomes

    campaign, broken = Campaign(), []
    with _progress(len(tasks), "seeds, {task.fields[broken]} broken") as step:
        for outcome, cpu_s in outcomes(tasks, min(jobs, len(tasks)), stopped=stop):
            campaign.add(outcome, cpu_s)
            if outcome.violations:
                broken.append(outcome)
            step(advance=1, broken=len(broken))
    return campaign.end(), broken


def _found(
    broken: list[Outcome], tasks: list[Task], stop: simulated.Stop
) -> dict[int, simulated.Decisions]:
    """By seed, the fewest decisions that break it."""
    from crewlet.testing.simulated.campaign import smallest

    found: dict[int, simulated.Decisions] = {}
    for outcome in broken[:SHRUNK]:
        task = _task(tasks, outcome.seed)
        with _progress(None, f"decisions of seed {outcome.seed} are left") as step:
            small = smallest(outcome, task, stopped=stop, progress=partial(_left, step))
        found[outcome.seed] = small.decisions
    return found


def _left(step: Callable[..., None], decisions: int) -> None:
    step(completed=decisions)


@contextmanager
def _progress(total: int | None, text: str) -> Iterator[Callable[..., None]]:
    """A bar on standard error, where a person looks at it; a count where there is no total."""
    if total == 1 or not is_rich(sys.stderr, os.environ):
        yield lambda **_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    counted = (SpinnerColumn(), TextColumn("{task.completed:.0f}"), TextColumn(text))
    barred = (BarColumn(), MofNCompleteColumn(), TextColumn(text), TimeRemainingColumn())
    columns = counted if total is None else barred
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, broken=0)
        yield lambda **now: bar.update(task, **now)


def _show(
    summary: Summary,
    broken: list[Outcome],
    found: dict[int, simulated.Decisions],
    tasks: list[Task],
    out: Output,
) -> None:
    from actors.simulation.history import told

    if out.format != "table":
        out.one(encode(simulated.row(summary, found, tasks[0])))
        return
    for place, outcome in enumerate(broken):
        task = _task(tasks, outcome.seed)
        if place < SHRUNK:
            sink.write_text("".join(f"  {told(record)}\n" for record in outcome.last[-20:]))
        for one in (one for one in summary.violations if one.seed == outcome.seed):
            sink.write_text(simulated.sentence(one) + "\n")
        if outcome.seed in found:
            sink.write_text(simulated.fewest(found[outcome.seed]))
        sink.write_text(f"  again: {simulated.again(task)}\n")
    sink.write_text(simulated.totals(summary))
