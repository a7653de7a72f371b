"""Rounds in which everybody has a turn, and the medians that are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TypeVar

from benchmarks.report import Report

T = TypeVar("T")

Measured = Mapping[str, Sequence[float]]
"""What each subject came to, round by round."""


def in_turns(subjects: Sequence[T], rounds: int) -> Iterator[T]:
    """Each subject once a round; each goes first as often as any other, since what a round
    leaves behind hits all alike."""
    for turn in range(rounds):
        shift = turn % len(subjects)
        yield from subjects[shift:]
        yield from subjects[:shift]


def compare(
    report: Report, measured: Measured, limit: str, metric: str, unit: str, *, suffix: str = ""
) -> None:
    """A row each. Its ratio is the median of those of one round each: what slowed a round slowed
    both sides of it."""
    for subject, values in measured.items():
        ratios = [
            mine / least for mine, least in zip(values, measured[limit], strict=True) if least
        ]
        ratio = median(ratios) if ratios else None
        report.add(f"{subject}{suffix}", metric, unit, median(values), ratio)
