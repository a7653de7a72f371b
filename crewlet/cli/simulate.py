"""`crewlet simulate`: a fleet with everything that can go wrong, in virtual time, from a seed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from crewlet.cli import sink
from crewlet.cli.exits import FAILED, OK
from crewlet.cli.options import output_option
from crewlet.cli.output import Output, encode
from crewlet.version import __version__

if TYPE_CHECKING:
    from actors.simulation.run import Outcome
    from crewlet.testing.simulated.campaign import Found, Summary, Task

EPILOG = """\b
Examples:
  crewlet simulate --seed 17                       # one seed
  crewlet simulate --seeds 1..500 --jobs 2         # many, on two cores
  crewlet simulate --seed 17 --trace t.jsonl       # every record of it
  crewlet simulate --seeds 1..50 -o json | jq .sometimes
\b
The same code and seed are the same run, record for record. A broken promise is named by its
number in docs/reliability.md, with the seed, the commit, the virtual time and the step.
Exit codes: 0 every promise was kept, 1 one was not.
"""

PROFILES: Final = ("swarm", "lease", "mail", "poison", "moves")
"""As actors.simulation.faults has them, which is loaded when it is needed."""

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
    type=click.FloatRange(min=0.1, max=60.0),
    default=5.0,
    show_default=True,
    help="Virtual minutes in which things go wrong.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write every record of the (last) seed here, a JSON line each.",
)
@click.option("--shrink/--no-shrink", default=True, help="Look for the fewest decisions that fail.")
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
    watches the fleet recover. Virtual time: a seed takes about a second.
    """
    from crewlet.testing.simulated.campaign import Task

    if (seed is None) == (seeds is None):
        raise click.UsageError("say --seed N or --seeds A..B, one of them")
    wanted = seeds if seeds is not None else range(seed or 0, (seed or 0) + 1)
    tasks = [Task(one, profile, minutes * 60.0) for one in wanted]  # type: ignore[arg-type]
    summary, broken = _play(tasks, jobs, trace)
    _show(summary, broken, tasks, out, shrink=shrink)
    return FAILED if summary.violations else OK


def _play(tasks: list[Task], jobs: int, trace: Path | None) -> tuple[Summary, list[Outcome]]:
    """All of them; and those that broke something, with their last records."""
    from crewlet.testing.simulated.campaign import Campaign, outcomes, play

    campaign, broken = Campaign(), []
    with _progress(len(tasks)) as step:
        for outcome, cpu_s in outcomes(tasks, min(jobs, len(tasks))):
            campaign.add(outcome, cpu_s)
            if outcome.violations:
                broken.append(outcome)
            step(len(campaign.summary.violations))
    summary = campaign.end()
    if trace is not None:
        with trace.open("wb") as file:
            play(tasks[-1], trace=file)
    return summary, broken


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar on standard error, where a person looks at it."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda violations: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("seeds, {task.fields[broken]} broken"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("seeds", total=total, broken=0)
        yield lambda violations: bar.update(task, advance=1, broken=violations)


def _show(
    summary: Summary, broken: list[Outcome], tasks: list[Task], out: Output, *, shrink: bool
) -> None:
    from actors.simulation.history import told

    if out.format != "table":
        out.one(encode({**msgspec.to_builtins(summary), "commit": commit()}))
        return
    for outcome in broken[:3]:
        for record in outcome.last[-20:]:
            sink.write_text(f"  {told(record)}\n")
        for found in (one for one in summary.violations if one.seed == outcome.seed):
            sink.write_text(sentence(found) + "\n")
        if shrink:
            task = next(task for task in tasks if task.seed == outcome.seed)
            sink.write_text(_fewest(outcome, task))
    rest = {one.seed: one for one in summary.violations}
    for found in [one for one in rest.values() if one.seed not in {o.seed for o in broken[:3]}]:
        sink.write_text(sentence(found) + "\n")
    sink.write_text(totals(summary))


def sentence(found: Found) -> str:
    """What was broken, and all that it takes to see it again."""
    return (
        f"seed {found.seed}, commit {commit()}, profile {found.profile}: {found.invariant} at "
        f"{found.t:.3f} s, step {found.step}: {found.text}"
    )


def _fewest(outcome: Outcome, task: Task) -> str:
    from crewlet.testing.simulated.campaign import smallest

    small = smallest(outcome, task)
    lines = [f"  {one.t:8.3f} {one.kind} {_about(one)}" for one in small.decisions]
    return f"  {len(small.decisions)} decisions are enough:\n" + "".join(f"{x}\n" for x in lines)


def _about(decision: Any) -> str:
    node = f"n{decision.node + 1} " if decision.node >= 0 else ""
    length = f"for {decision.length_s:g} s " if decision.length_s else ""
    return f"{node}{length}{decision.text}".strip()


def totals(summary: Summary) -> str:
    """Two or three lines for people."""
    broken = len(summary.violations)
    lines = [
        f"{summary.seeds} seeds, {summary.handoffs} hand-offs, {summary.turns} turns, "
        f"{broken or 'no'} broken promise{'' if broken == 1 else 's'}",
        f"{summary.handoffs_per_minute} hand-offs a minute and core, "
        f"{summary.virtual_per_real} virtual seconds a second",
        f"trace hash {summary.trace_hash}",
    ]
    if summary.unseen and summary.seeds >= 100:
        lines.append(f"never or hardly seen: {', '.join(summary.unseen)}")
    return "".join(f"{line}\n" for line in lines)


def commit() -> str:
    """Of the code that runs, where it is a checkout; else the version."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return __version__
    return answer.stdout.strip() or __version__
