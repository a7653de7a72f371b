"""Simulate a company of your own: your handler on a fleet where everything goes wrong.

    from crewlet.testing import simulate

    report = simulate(company, handler, seeds=range(20))

Every promise of docs/guide/simulation.md is checked, and your own invariants beside them.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from actors.simulation import faults
from actors.simulation.checkers import Rules, Violation
from actors.simulation.faults import PROFILES, Decision, Knobs, Plan, Profile, plan
from actors.simulation.fleet import Fleet
from actors.simulation.history import Record, told
from actors.simulation.run import Outcome, run
from actors.simulation.shrink import shrink
from crewlet.commit import commit
from crewlet.company import Company, load_company
from crewlet.errors import ConfigError
from crewlet.handlers.target import checked
from crewlet.testing.simulated.campaign import Campaign, Summary
from crewlet.testing.simulated.company import Answer, CompanySite
from crewlet.testing.simulated.failures import Failures, added
from crewlet.testing.simulated.invariants import Invariant, Invariants
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
        (handler, named), failures = self.make(), Failures()
        invariants = Invariants(named)
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
            invariants.listen(fleet)
            return CompanySite(fleet, self.company, handler, self.texts, failures)

        begun = time.process_time()
        with quiet(), _chance_of(this.seed):
            outcome = run(this, site, rules=rules, faults_s=self.minutes * 60.0)
        if invariants.error is not None:
            raise invariants.error
        return _Played(outcome, failures, tuple(records), time.process_time() - begun)


def simulate(
    company: Company | Path | str,
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
    """Play the company (or that of a file) once for each seed, `minutes` virtual minutes of faults
    and two of calm.

    `handler` is a function of a turn, async or not; it runs on all nodes of the simulated fleet,
    and time in it is virtual (`await asyncio.sleep(60)` costs nothing; a turn times out after 60
    seconds). It may not use threads, sockets, the wall clock or chance of its own, but for the
    module `random`, which is the seed's: the same seed has to be the same run. The first seed is
    played twice to see that it is.
    A handler or an invariant that keeps a state of its own comes from `make`, which is called
    anew for each run and then stands for `handler` and `invariants`.

    Raises Promise with the first seed that breaks something, Different where the first seed is
    two runs, ValueError for what can't be played, ConfigError for a file that is refused, and what
    an invariant raises that is no failed assertion; else says what was seen.
    """
    numbers = _checked_input(seeds, minutes, profile, texts)
    makes = _maker(handler, invariants, make)
    this = _Play(_checked_company(company), makes, texts, minutes)
    campaign, played, failures = Campaign(), [], dict[str, int]()
    for seed in numbers:
        whole, first = _plan(seed, profile, this.company, minutes), seed == numbers[0]
        one = this.run(whole, keep=first)
        if one.outcome.violations:
            smallest = _smallest(whole, one.outcome, this) if shrinking else whole
            again = _again(whole, minutes, "handler" if make is None else "make=make")
            raise Promise(one.outcome, smallest, [*one.failures.lines, again])
        if first:
            _compare(seed, one, this.run(whole, keep=True))
        campaign.add(one.outcome, one.cpu_s)
        played.append(one.outcome)
        failures = added(failures, one.failures.counts)
    return Report(campaign.end(), tuple(played), failures)


def _checked_input(
    seeds: Iterable[int], minutes: float, profile: str, texts: Sequence[str]
) -> list[int]:
    """The seeds. Raises ValueError where something can't be played."""
    if not isinstance(cast(object, seeds), Iterable) or not (numbers := list(seeds)):
        raise ValueError(f"seeds={seeds!r} names no seed: say range(10), or [17]")
    if strange := [one for one in numbers if not isinstance(cast(object, one), int)]:
        raise ValueError(f"seeds={seeds!r}: a seed is a whole number, which {strange[0]!r} is not")
    if not isinstance(cast(object, minutes), int | float) or not 0.0 < minutes < math.inf:
        raise ValueError(f"minutes={minutes!r} is no time in which anything could go wrong")
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r} is none of {', '.join(PROFILES)}")
    if isinstance(texts, str) or not texts:
        raise ValueError("texts has to name what people ask of the seats: one text at least")
    return numbers


def _checked_company(company: Company | Path | str) -> Company:
    """As a node takes it. Raises ValueError where it has nobody to simulate."""
    if isinstance(company, str | Path):
        company = load_company(Path(company))
    if not isinstance(cast(object, company), Company):
        raise ValueError(f"company={company!r} is no Company, and no path of a company's file")
    if not company.agents():
        raise ValueError(f"{company.name} has no agent that could be simulated")
    return company


def _maker(
    handler: Answer | None,
    invariants: Mapping[str, Invariant] | None,
    make: Callable[[], Made] | None,
) -> Callable[[], Made]:
    """How a run gets its handler and its invariants."""
    if (handler is None) == (make is None) or (make is not None and invariants is not None):
        raise ValueError("say handler or make, one of them; invariants go with the handler")
    if make is None:
        given = _checked_made((handler, {} if invariants is None else invariants))
        return lambda: given
    if not callable(make):
        raise ValueError(f"make={make!r} is no function; it gives a handler and its invariants")
    return lambda: _checked_made(make())


def _checked_made(made: object) -> Made:
    """A handler that a node would take, and invariants by name. Raises ValueError."""
    if not isinstance(made, tuple) or len(made) != 2:
        raise ValueError(f"make has to return (handler, invariants), {{}} for none; not {made!r}")
    handler, invariants = made
    try:
        checked(handler, getattr(handler, "__qualname__", repr(handler)), key="handler")
    except ConfigError as refused:
        raise ValueError(str(refused)) from None
    if not isinstance(invariants, Mapping):
        raise ValueError("invariants is a mapping: the name of each, and its function")
    for name, invariant in invariants.items():
        if not callable(invariant):
            raise ValueError(f"the invariant {name!r} is no function of a record: {invariant!r}")
    return handler, invariants


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
    company: Company | Path | str,
    handler: Answer,
    *,
    seconds: float = 60.0,
    invariants: Mapping[str, Invariant] | None = None,
    texts: Sequence[str] = TEXTS,
) -> Outcome:
    """One plan, as `crewlet.testing.strategies.plans` draws it: `seconds` of its faults and two
    minutes of calm, virtual. The outcome says what was broken and no Promise is raised, so
    that hypothesis finds the smaller plan; bad input is, and what an invariant raises."""
    maker, whose = _maker(handler, invariants, None), _checked_company(company)
    return _Play(whose, maker, texts, seconds / 60.0).run(_fitted(this, whose)).outcome


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


def _smallest(whole: Plan, outcome: Outcome, this: _Play) -> Plan:
    broken = outcome.violations[0].invariant

    def fails(smaller: Plan) -> bool:
        return any(one.invariant == broken for one in this.run(smaller).outcome.violations)

    return shrink(whole, fails, most_runs=60)


def _again(this: Plan, minutes: float, whose: str) -> str:
    arguments = f"seeds=[{this.seed}], profile={this.profile!r}, minutes={minutes!r}"
    return f"again: simulate(company, {whose}, {arguments})"


def _sentence(outcome: Outcome, smallest: Plan, about: Sequence[str]) -> str:
    first, count = outcome.violations[0], len(smallest.decisions)
    enough = f"{count} decisions are enough:" if count else "it needs no fault at all"
    return "\n".join(
        [
            f"seed {outcome.seed}, profile {outcome.profile}, crewlet {commit()}: "
            f"{first.invariant} at {first.t:.3f} s, step {first.step}: {first.text}",
            *(told(record) for record in outcome.last[-SHOWN:]),
            "1 decision is enough:" if count == 1 else enough,
            *(f"  {faults.told(one)}" for one in smallest.decisions),
            *about,
        ]
    )
