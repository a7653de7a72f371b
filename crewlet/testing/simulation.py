"""Simulate a company of your own: your handler on a fleet where everything goes wrong.

    from crewlet.testing.simulation import simulate

    report = simulate(company, handler, seeds=range(20))

Every promise of docs/reliability.md is checked, and your own invariants beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from actors.simulation.checkers import Rules, Violation
from actors.simulation.faults import Decision, Knobs, Plan, Profile, plan
from actors.simulation.fleet import Fleet
from actors.simulation.history import Record, told
from actors.simulation.run import Outcome, run
from actors.simulation.shrink import shrink
from crewlet.company import Company
from crewlet.testing.simulated.campaign import Campaign, Summary
from crewlet.testing.simulated.company import Answer, CompanySite
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import HURRIED

__all__ = [
    "Decision",
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

Invariant = Callable[[Record], str | None]
"""Called with each record of the history as it is written; a sentence says what it broke."""

TEXTS: Final = ("Say hello", "Fix the build", "What is left to do?", "Review this change")
SHOWN: Final = 20


class Promise(AssertionError):
    """A promise was broken. Its text names the seed, the invariant, when it happened, and the
    fewest decisions that break it; `outcome` is the run, `plan` what breaks it."""

    def __init__(self, outcome: Outcome, smallest: Plan) -> None:
        self.outcome = outcome
        self.plan = smallest
        super().__init__(_sentence(outcome, smallest))


class Report(Struct, frozen=True):
    """What was seen: how much of what, and how rare events came up (`summary.sometimes`)."""

    summary: Summary
    outcomes: tuple[Outcome, ...]


def simulate(
    company: Company,
    handler: Answer,
    *,
    seeds: Iterable[int] = range(10),
    invariants: Mapping[str, Invariant] | None = None,
    make: Callable[[], tuple[Answer, Mapping[str, Invariant]]] | None = None,
    profile: Profile = "swarm",
    minutes: float = 5.0,
    texts: Sequence[str] = TEXTS,
    shrinking: bool = True,
) -> Report:
    """Play the company once for each seed, `minutes` virtual minutes of faults and two of calm.

    `handler` is a function of a turn, async or not; it runs on all nodes of the simulated fleet,
    and time in it is virtual (`await asyncio.sleep(60)` costs nothing). It may not use threads,
    sockets, the wall clock or chance of its own: the same seed has to be the same run.
    A handler or an invariant that keeps a state of its own comes from `make`, which is called
    anew for each run and then stands for `handler` and `invariants`.

    Raises Promise with the first seed that breaks something; else says what was seen.
    """
    campaign, played = Campaign(), []
    for seed in seeds:
        whole = _plan(seed, profile, company, minutes)

        def once(this: Plan) -> Outcome:
            answer, checked = make() if make is not None else (handler, invariants or {})
            return _run(this, company, answer, checked, texts, minutes)

        outcome = once(whole)
        if outcome.violations:
            raise Promise(outcome, _smallest(whole, outcome, once) if shrinking else whole)
        campaign.add(outcome, 0.0)
        played.append(outcome)
    return Report(campaign.end(), tuple(played))


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
    fitted = _fitted(this, company)
    return _run(fitted, company, handler, invariants or {}, texts, seconds / 60.0)


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


def _run(
    this: Plan,
    company: Company,
    handler: Answer,
    invariants: Mapping[str, Invariant],
    texts: Sequence[str],
    minutes: float,
) -> Outcome:
    linger_s = this.knobs.linger_s
    rules = Rules(
        backoff=HURRIED,
        max_batch=this.knobs.max_batch,
        lift_s=1.0 + linger_s,
        graceful_s=1.0 + linger_s,
    )

    def site(fleet: Fleet) -> CompanySite:
        for name, invariant in invariants.items():
            fleet.history.hear_all(_checked(fleet, name, invariant))
        return CompanySite(fleet, company, handler, texts)

    with quiet():
        return run(this, site, rules=rules, faults_s=minutes * 60.0)


def _checked(fleet: Fleet, name: str, invariant: Invariant) -> Callable[[Record], None]:
    def hear(record: Record) -> None:
        if sentence := invariant(record):
            fleet.fail(name, sentence)

    return hear


def _smallest(whole: Plan, outcome: Outcome, once: Callable[[Plan], Outcome]) -> Plan:
    broken = outcome.violations[0].invariant

    def fails(smaller: Plan) -> bool:
        return any(one.invariant == broken for one in once(smaller).violations)

    return shrink(whole, fails, most_runs=60)


def _sentence(outcome: Outcome, smallest: Plan) -> str:
    first = outcome.violations[0]
    lines: list[Any] = [
        f"seed {outcome.seed}, profile {outcome.profile}: {first.invariant} at {first.t:.3f} s, "
        f"step {first.step}: {first.text}",
        *(told(record) for record in outcome.last[-SHOWN:]),
        f"{len(smallest.decisions)} decisions are enough:",
        *(f"  {one.t:.3f} s: {one.kind} {one.text}".rstrip() for one in smallest.decisions),
    ]
    return "\n".join(lines)
