"""Many seeds, one result: what `crewlet simulate` runs."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from typing import BinaryIO, Final

from msgspec import Struct, field

from actors.simulation.checkers import Rules
from actors.simulation.faults import FAULTS_S, Plan, Profile, plan
from actors.simulation.run import Outcome, run
from actors.simulation.shrink import shrink
from actors.simulation.sometimes import unseen
from crewlet.handlers.deathsig import dies_with
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import HURRIED, TwinSite

COLLECT_AFTER: Final = 20_000
"""Objects more than before, until a worker looks for garbage: 700 cost a twentieth of its time."""

LOOK_S: Final = 0.2
"""How often whoever waits for a seed looks whether it was stopped."""


class Task(Struct, frozen=True):
    """One seed to play."""

    seed: int
    profile: Profile
    faults_s: float = FAULTS_S


class Found(Struct, frozen=True, kw_only=True):
    """A broken promise, and how to see it again."""

    seed: int
    profile: str
    invariant: str
    t: float
    step: int
    text: str


class Summary(Struct, kw_only=True):
    """Of a campaign. `trace_hash` is over the digests of all seeds in their order: the same
    code and seeds give the same hash, on every machine. Speeds are of one core."""

    seeds: int = 0
    handoffs: int = 0
    turns: int = 0
    violations: list[Found] = field(default_factory=list)
    trace_hash: str = ""
    virtual_s: float = 0.0
    handoffs_per_minute: int = 0
    virtual_per_real: int = 0
    sometimes: dict[str, int] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


def rules_of(played: Plan) -> Rules:
    """The numbers that a plan's knobs ask for."""
    return Rules(backoff=HURRIED, max_batch=played.knobs.max_batch)


def play(task: Task, *, trace: BinaryIO | None = None) -> Outcome:
    """One seed of the built-in fleet."""
    played = plan(task.seed, task.profile, faults_s=task.faults_s)
    with quiet():
        return run(played, TwinSite, rules=rules_of(played), faults_s=task.faults_s, trace=trace)


def smallest(
    outcome: Outcome,
    task: Task,
    *,
    most_runs: int = 100,
    most_s: float = 60.0,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda left: None,
) -> Plan:
    """The fewest decisions that still break what the outcome says was broken: the fewest found
    within so many runs and seconds of real time, or until it is `stopped`. `progress` is told how
    many are left."""
    invariant = outcome.violations[0].invariant
    whole = plan(task.seed, task.profile, faults_s=task.faults_s)

    until = time.monotonic() + most_s

    def fails(smaller: Plan) -> bool:
        if stopped() or time.monotonic() > until:
            return False
        again = run(smaller, TwinSite, rules=rules_of(smaller), faults_s=task.faults_s)
        return any(one.invariant == invariant for one in again.violations)

    with quiet():
        return shrink(whole, fails, most_runs=most_runs, progress=progress)


def outcomes(
    tasks: Iterable[Task], jobs: int, *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Outcome, float]]:
    """In the order of the tasks, over so many processes; each with the seconds of a core that
    it took. Once it is `stopped` no further one is begun."""
    if jobs <= 1:
        for task in tasks:
            if stopped():
                return
            yield _timed(task)
        return
    # A bound on tasks makes it begin its workers anew, not as copies of this process.
    with ProcessPoolExecutor(
        jobs, max_tasks_per_child=1_000_000, initializer=_begin, initargs=(os.getpid(),)
    ) as pool:
        # What is blocked here is blocked in them: they end with whoever began them.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            waiting = [pool.submit(_timed, task) for task in tasks]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for future in waiting:
            while not (ended := wait((future,), timeout=LOOK_S).done) and not stopped():
                pass
            if stopped():
                for other in waiting:
                    other.cancel()
                return
            if ended:
                yield future.result()


def _begin(parent: int) -> None:
    """A worker does not outlive whoever began it. A run leaves little that only the garbage
    collector frees, and what was imported stays."""
    if dies := dies_with(parent):
        dies()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def _timed(task: Task) -> tuple[Outcome, float]:
    begun = time.process_time()
    outcome = play(task)
    return outcome, time.process_time() - begun


class Campaign:
    """Adds outcomes up."""

    def __init__(self) -> None:
        self.summary = Summary()
        self._cpu_s = 0.0
        self._hash = hashlib.sha256()

    def add(self, outcome: Outcome, cpu_s: float) -> None:
        summary = self.summary
        self._cpu_s += cpu_s
        summary.seeds += 1
        summary.handoffs += outcome.handoffs
        summary.turns += outcome.turns
        summary.virtual_s += outcome.virtual_s
        self._hash.update(f"{outcome.profile} {outcome.seed} {outcome.digest}\n".encode())
        for name, count in outcome.seen.items():
            summary.sometimes[name] = summary.sometimes.get(name, 0) + count
        for name, worst in outcome.figures.items():
            summary.figures[name] = max(worst, summary.figures.get(name, worst))
        summary.violations += found(outcome)

    def end(self) -> Summary:
        """What it all came to."""
        summary, elapsed_s = self.summary, self._cpu_s
        summary.trace_hash = self._hash.hexdigest()
        summary.handoffs_per_minute = round(summary.handoffs * 60 / max(elapsed_s, 1e-9))
        summary.virtual_per_real = round(summary.virtual_s / max(elapsed_s, 1e-9))
        summary.unseen = unseen(summary.sometimes, summary.seeds)
        return summary


def found(outcome: Outcome) -> list[Found]:
    return [
        Found(
            seed=outcome.seed,
            profile=outcome.profile,
            invariant=one.invariant,
            t=round(one.t, 3),
            step=one.step,
            text=one.text,
        )
        for one in outcome.violations
    ]
