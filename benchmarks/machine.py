"""How fast are the machines that decide, and the envelope, without anything around them?

A consumer that is fed drains of twenty and told that each turn ended well; a drain that is split
into conversations; a fleet's seats that are shared over its nodes. Nothing here waits, so there
is no limit to compare with, and seconds are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

from actors.delivery import Ack, BatchOptions, Delivery, Letter, Mailbox
from actors.machines.batch import partitions
from actors.machines.consumer import Consumer
from actors.machines.placement import Board, Member, Place, fair_shares
from actors.machines.signals import Attached, Ended, Pulled, Run
from benchmarks import envelope
from benchmarks.report import OURS, Report
from benchmarks.rounds import in_turns

BOX: Final = Mailbox("a topic", "a group")
DRAIN: Final = 20
OPTIONS: Final = BatchOptions(DRAIN)
NODES: Final = ("first", "second", "third")

Work = Callable[[int], int]
"""Does so many rounds of something; how many steps that were."""


def run(*, quick: bool) -> Report:
    report = Report("machine")
    measure(report, rounds=1 if quick else 9, count=10 if quick else 1000)
    return report


def measure(report: Report, *, rounds: int, count: int) -> None:
    """`count` drains a round; of boards, which are larger, a fiftieth."""
    work: dict[str, tuple[Work, int, str]] = {
        "consumer, one conversation": (lambda n: consume(n, 1), count, "steps/s"),
        f"consumer, {DRAIN} conversations": (lambda n: consume(n, DRAIN), count, "steps/s"),
        "batching, one conversation": (lambda n: batch(n, 1), count, "letters/s"),
        f"batching, {DRAIN} conversations": (lambda n: batch(n, DRAIN), count, "letters/s"),
        "placement, a fleet at rest": (lambda n: place(n, free=False), count // 50, "seats/s"),
        "placement, all seats free": (lambda n: place(n, free=True), count // 50, "seats/s"),
    }
    for step, does in envelope.steps().items():
        work[step] = (partial(_times, does), count, "1/s")
    rates: dict[str, list[float]] = {metric: [] for metric in work}
    for metric in in_turns(list(work), rounds):
        task, times, _ = work[metric]
        rates[metric].append(_rate(task, max(1, times)))
    for metric, (_, _, unit) in work.items():
        report.add(OURS, metric, unit, median(rates[metric]))


def _times(does: Callable[[], object], times: int) -> int:
    for _ in range(times):
        does()
    return times


def _rate(does: Work, times: int) -> float:
    began = time.process_time()
    steps = does(times)
    return steps / max(1e-9, time.process_time() - began)


def letters(conversations: int) -> tuple[Letter, ...]:
    """A drain, in so many conversations by turns."""
    return tuple(
        Letter(Delivery(BOX, b"", 1, n, str(n)), str(n), f"{n % conversations}", float(n), None)
        for n in range(DRAIN)
    )


def consume(drains: int, conversations: int) -> int:
    """Pull, run what it came to, settle each, pull again."""
    machine, drain = Consumer(), letters(conversations)
    effects = machine.step(Attached(OPTIONS))
    steps = 1
    for at in range(drains):
        effects = machine.step(Pulled(drain, float(at), OPTIONS))
        steps += 1
        while runs := [one for one in effects if isinstance(one, Run)]:
            effects = machine.step(Ended(runs[0].number, Ack()))
            steps += 1
    return steps


def batch(drains: int, conversations: int) -> int:
    drain = letters(conversations)
    for _ in range(drains):
        partitions(drain)
    return drains * DRAIN


def place(boards: int, *, free: bool) -> int:
    """1,000 seats of one kind over three nodes, as one of the nodes decides."""
    members = [Member(id) for id in NODES]
    holders = [""] if free else list(NODES)
    places = [Place(f"s{n}", holder=holders[n % len(holders)]) for n in range(1000)]
    board = Board(NODES[0], members, places)
    for _ in range(boards):
        fair_shares(board)
    return boards * len(places)
