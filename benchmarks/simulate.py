"""How much of a fleet's life does a core play in a minute?

Whole seeds, as `crewlet simulate` plays them: faults, every check, and the recovery. Processor
time, so that what else the machine does counts for nothing; shrinking is not in it.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from actors.simulation.faults import Profile
from benchmarks.report import OURS, Report
from benchmarks.rounds import in_turns
from crewlet.testing.simulated.campaign import Campaign, Task, outcomes

PROFILES: Final[tuple[Profile, ...]] = ("swarm", "moves")
FIRST: Final = 1


def run(*, quick: bool) -> Report:
    report = Report("simulate")
    measure(report, rounds=1 if quick else 3, seeds=1 if quick else 5)
    return report


def measure(report: Report, *, rounds: int, seeds: int, faults_s: float = 300.0) -> None:
    """The same seeds each round: they are the same work, record for record."""
    moved: dict[Profile, list[float]] = {profile: [] for profile in PROFILES}
    virtual: dict[Profile, list[float]] = {profile: [] for profile in PROFILES}
    for profile in in_turns(PROFILES, rounds):
        campaign = Campaign()
        tasks = [Task(seed, profile, faults_s) for seed in range(FIRST, FIRST + seeds)]
        for outcome, cpu_s in outcomes(tasks, jobs=1):
            campaign.add(outcome, cpu_s)
        summary = campaign.end()
        assert not summary.violations, summary.violations
        moved[profile].append(summary.handoffs_per_minute)
        virtual[profile].append(summary.virtual_per_real)
    for profile in PROFILES:
        report.add(OURS, f"hand-offs, {profile}", "1/min", median(moved[profile]))
        report.add(OURS, f"virtual time, {profile}", "s/s", median(virtual[profile]))
