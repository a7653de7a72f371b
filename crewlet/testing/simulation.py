"""Simulate a company of your own: your handler on a fleet where everything goes wrong.

    from crewlet.testing import simulate

    report = simulate(company, handler, seeds=range(20))

Every promise of docs/reliability.md is checked, and your own invariants beside them.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from actors.simulation.checkers import Rules, Violation
from actors.simulation.faults import PROFILES, Decision, Knobs, Plan, Profile, plan
from actors.simulation.fleet import Fleet
from actors.simulation.history import Record, told
from actors.simulation.run import Outcome, run
from actors.simulation.shrink import shrink
from crewlet.commit import commit
from crewlet.company import Company
from crewlet.testing.simulated.campaign import Campaign, Summary
from crewlet.testing.simulated.company import Answer, CompanySite
from crewlet.testing.simulated.failures import Failures, added
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import HURRIED

__all__ = [
    "Answer",
    "Decision",
    "Different",
    "Invariant",
    "Outcome",
    "Plan",
    "Promise",
    "Record",
    "Report",
    "Violation",
    "play",
    "simulate",
]

Invariant: TypeAlias = Callable[[Record], str | None]
"""Called with each record of the history as it is written; a sentence says what it broke. The
last one is `over`: what has to be true in the end is judged then."""

Made: TypeAlias = tuple[Answer, Mapping[str, Invariant]]

TEXTS: Final = ("Say hello", "Fix the build", "What is left to do?", "Review this change")
SHOWN: Final = 20


class Promise(AssertionError):
    """A promise was broken. Its text names the seed, the invariant, when it happened, the fewest
    decisions that break it, and why turns failed; `outcome` is the run, `plan` what breaks
    it."""

    def __init__(self, outcome: Outcome, smallest: Plan, about: Sequence[str] = ()) -> None:
        self.outcome = outcome
        self.plan = smallest
        super().__init__(_sentence(outcome, smallest, about))


class Different(AssertionError):
    """The same seed was two different runs: what was seen can't be seen again."""


class Report(Struct, frozen=True):
    """What was seen: how much of what, and how rare events came up (`summary.sometimes`; what is
    in `summary.unseen` was not shown). `failures` counts why turns failed."""

    summary: Summary
    outcomes: tuple[Outcome, ...]
    failures: Mapping[str, int]


class _Played(Struct, frozen=True):
    outcome: Outcome
    failures: Failures
    records: tuple[Record, ...] = ()
    cpu_s: float = 0.0


class _Play(Struct, frozen=True):
    """What is the same for all runs."""

    company: Company
    make: Callable[[], Made]
    texts: Sequence[str]
    minutes: float

    def run(self, this: Plan, *, keep: bool = False) -> _Played:
        """One run; `keep`: with all of its records."""
        (handler, invariants), failures = self.make(), Failures()
        records: list[Record] = []
        linger_s = this.knobs.linger_s
        rules = Rules(
            backoff=HURRIED,
            max_batch=this.knobs.max_batch,
            lift_s=1.0 + linger_s,
            graceful_s=1.0 + linger_s,
        )

        def site(fleet: Fleet) -> CompanySite:
            if keep:
                fleet.history.hear_all(records.append)
            for name, invariant in invariants.items():
                fleet.history.hear_all(_checked(fleet, name, invariant))
            return CompanySite(fleet, self.company, handler, self.texts, failures)

        begun = time.process_time()
        with quiet(), _chance_of(this.seed):
            outcome = run(this, site, rules=rules, faults_s=self.minutes * 60.0)
        return _Played(outcome, failures, tuple(records), time.process_time() - begun)


def simulate(
    company: Company,
    handler: Answer | None = None,
    *,
    seeds: Iterable[int] = range(10),
    invariants: Mapping[str, Invariant] | None = None,
    make: Callable[[], Made] | None = None,
    profile: Profile = "swarm",
    minutes: float = 5.0,
    texts: Sequence[str] = TEXTS,
    shrinking: bool = True,
) -> Report:
    """Play the company once for each seed, `minutes` virtual minutes of faults and two of calm.

    `handler` is a function of a turn, async or not; it runs on all nodes of the simulated fleet,
    and time in it is virtual (`await asyncio.sleep(60)` costs nothing; a turn times out after 60
    seconds). It may not use threads, sockets, the wall clock or chance of its own, but for the
    module `random`, which is the seed's: the same seed has to be the same run. The first seed is
    played twice to see that it is.
    A handler or an invariant that keeps a state of its own comes from `make`, which is called
    anew for each run and then stands for `handler` and `invariants`.

    Raises Promise with the first seed that breaks something, Different where the first seed is
    two runs, ValueError for what can't be played; else says what was seen.
    """
    numbers = _checked_input(company, seeds, minutes, profile, texts)
    this = _Play(company, _maker(handler, invariants, make), texts, minutes)
    campaign, played, failures = Campaign(), [], dict[str, int]()
    for seed in numbers:
        whole, first = _plan(seed, profile, company, minutes), seed == numbers[0]
        one = this.run(whole, keep=first)
        if one.outcome.violations:
            smallest = _smallest(whole, one.outcome, this) if shrinking else whole
            raise Promise(one.outcome, smallest, [*one.failures.lines, _again(whole, minutes)])
        if first:
            _compare(seed, one, this.run(whole, keep=True))
        campaign.add(one.outcome, one.cpu_s)
        played.append(one.outcome)
        failures = added(failures, one.failures.counts)
    return Report(campaign.end(), tuple(played), failures)


def _checked_input(
    company: Company,
    seeds: Iterable[int],
    minutes: float,
    profile: str,
    texts: Sequence[str],
) -> list[int]:
    """The seeds. Raises ValueError where something can't be played."""
    if not isinstance(cast(object, seeds), Iterable) or not (numbers := list(seeds)):
        raise ValueError(f"seeds={seeds!r} names no seed: say range(10), or [17]")
    if not 0.0 < minutes < math.inf:
        raise ValueError(f"minutes={minutes!r} is no time in which anything could go wrong")
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r} is none of {', '.join(PROFILES)}")
    if isinstance(texts, str) or not texts:
        raise ValueError("texts has to name what people ask of the seats: one text at least")
    if not company.agents():
        raise ValueError(f"{company.name} has no agent that could be simulated")
    return numbers


def _maker(
    handler: Answer | None,
    invariants: Mapping[str, Invariant] | None,
    make: Callable[[], Made] | None,
) -> Callable[[], Made]:
    """How a run gets its handler and its invariants."""
    if (handler is None) == (make is None) or (make is not None and invariants is not None):
        raise ValueError("say handler or make, one of them; invariants go with the handler")
    if make is not None:
        return make
    if not callable(handler):
        raise ValueError(f"handler={handler!r} is no function of a turn")
    checked = {} if invariants is None else invariants
    if not isinstance(cast(object, checked), Mapping):
        raise ValueError("invariants is a mapping: the name of each, and its function")
    return lambda: (handler, checked)


@contextmanager
def _chance_of(seed: int) -> Iterator[None]:
    """The module `random` is the seed's inside the block, and as it was behind it."""
    before = random.getstate()
    random.seed(f"handler {seed}")
    try:
        yield
    finally:
        random.setstate(before)


def _compare(seed: int, one: _Played, other: _Played) -> None:
    if one.outcome.digest == other.outcome.digest:
        return
    both = itertools.zip_longest(one.records, other.records)
    here, there = next((pair for pair in both if pair[0] != pair[1]), (None, None))
    said = [told(record).strip() if record else "nothing" for record in (here, there)]
    raise Different(
        f"seed {seed} is two different runs: {said[0]!r} in one is {said[1]!r} in the other. "
        "The handler or an invariant goes by something of its own: the wall clock, chance, "
        "the order of a set, or a state that it keeps from run to run (then hand it over by make=)"
    )


def play(
    this: Plan,
    company: Company,
    handler: Answer,
    *,
    seconds: float = 60.0,
    invariants: Mapping[str, Invariant] | None = None,
    texts: Sequence[str] = TEXTS,
) -> Outcome:
    """One plan, as `crewlet.testing.strategies.plans` draws it: `seconds` of its faults and two
    minutes of calm, virtual. The outcome says what was broken; nothing is raised, so that
    hypothesis finds the smaller plan."""
    maker = _maker(handler, invariants, None)
    return _Play(company, maker, texts, seconds / 60.0).run(_fitted(this, company)).outcome


def _plan(seed: int, profile: Profile, company: Company, minutes: float) -> Plan:
    return _fitted(plan(seed, profile, faults_s=minutes * 60.0), company)


def _fitted(made: Plan, company: Company) -> Plan:
    """The seats and the drains of the company, and no mail that is meant to break handlers."""
    options = company.batch_options
    knobs: Knobs = replace(
        made.knobs,
        seats=len(company.agents()),
        max_batch=options.cap,
        linger_s=options.window_s,
        poison_chance=0.0,
        corrupt_chance=0.0,
    )
    return replace(made, knobs=knobs)


def _checked(fleet: Fleet, name: str, invariant: Invariant) -> Callable[[Record], None]:
    def hear(record: Record) -> None:
        try:
            sentence = cast(object, invariant(record))
        except Exception as error:
            error.add_note(f"in the invariant {name!r}, on seed {fleet.plan.seed}: {told(record)}")
            raise
        if sentence is not None and not isinstance(sentence, str):
            raise TypeError(f"{name!r} has to say None or a sentence, not {sentence!r}")
        if sentence:
            fleet.fail(name, sentence)

    return hear


def _smallest(whole: Plan, outcome: Outcome, this: _Play) -> Plan:
    broken = outcome.violations[0].invariant

    def fails(smaller: Plan) -> bool:
        return any(one.invariant == broken for one in this.run(smaller).outcome.violations)

    return shrink(whole, fails, most_runs=60)


def _again(this: Plan, minutes: float) -> str:
    arguments = f"seeds=[{this.seed}], profile={this.profile!r}, minutes={minutes:g}"
    return f"again: simulate(company, handler, {arguments})"


def _sentence(outcome: Outcome, smallest: Plan, about: Sequence[str]) -> str:
    first, count = outcome.violations[0], len(smallest.decisions)
    enough = f"{count} decisions are enough:" if count else "it needs no fault at all"
    return "\n".join(
        [
            f"seed {outcome.seed}, profile {outcome.profile}, crewlet {commit()}: "
            f"{first.invariant} at {first.t:.3f} s, step {first.step}: {first.text}",
            *(told(record) for record in outcome.last[-SHOWN:]),
            "1 decision is enough:" if count == 1 else enough,
            *(f"  {one.t:.3f} s: {one.kind} {one.text}".rstrip() for one in smallest.decisions),
            *about,
        ]
    )
