"""What each benchmark measures, on sizes that show the shape and no speed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from actors.delivery import Letter
from benchmarks import actors, machine, publish, rounds
from benchmarks.hooks import Hooks, Settled
from benchmarks.peers.face import BURST, bursts
from benchmarks.report import OURS, Report


def rows_of(report: Report) -> dict[tuple[str, str], float | None]:
    return {(row.subject, row.metric): row.ratio_to_limit for row in report.rows}


def test_each_subject_goes_first_as_often_as_any_other() -> None:
    order = list(rounds.in_turns("abc", 6))
    assert [order[at] for at in range(0, 18, 3)] == [*"abcabc"]
    assert all(sorted(order[at : at + 3]) == [*"abc"] for at in range(0, 18, 3))


def test_a_ratio_is_the_median_of_those_of_one_round() -> None:
    report = Report("any")
    measured: dict[str, Sequence[float]] = {"limit": [10.0, 1.0, 4.0], "ours": [5.0, 1.0, 1.0]}
    rounds.compare(report, measured, "limit", "rate", "1/s")
    assert [(row.value, row.ratio_to_limit) for row in report.rows] == [(4.0, 1.0), (1.0, 0.5)]


def test_bursts_are_all_of_the_messages() -> None:
    assert bursts(2 * BURST + 3) == [BURST, BURST, 3]
    assert bursts(BURST) == [BURST]


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And everybody else is compared with the bare queue. (A process an actor takes its time.)"""
    monkeypatch.setattr(actors, "find_spec", lambda name: None)
    here = {name: at for name, at in actors.MODULES.items() if name != actors.HEAVY}
    monkeypatch.setattr(actors, "MODULES", here)
    report = Report("actors")
    size = actors.Size(messages=20, actors=10, idle=10, rounds=1, timers=(0, 5))
    asyncio.run(actors.measure(report, size))
    rows = rows_of(report)
    for subject in (OURS, "thespian simpleSystemBase"):
        for metric in ("ping-pong", "one way", "ask", "create", "memory"):
            assert (subject, metric) in rows
    assert rows[actors.LIMIT, "ping-pong"] == rows[OURS, "ping-pong, 0 timers"] == 1.0
    assert (OURS, "ping-pong, 5 timers") in rows
    missing = {row.subject for row in report.rows if row.value is None}
    assert missing == {"pykka", "xoscar"}


@pytest.mark.parametrize(("conversations", "steps"), [(1, 1 + 3 * 2), (20, 1 + 3 * 21)])
def test_a_consumer_takes_a_step_for_each_drain_and_each_turn(
    conversations: int, steps: int
) -> None:
    assert machine.consume(3, conversations) == steps
    drain: tuple[Letter, ...] = machine.letters(conversations)
    assert len(drain) == machine.DRAIN and len({one.key for one in drain}) == conversations


def test_a_publish_is_compared_with_a_bare_request() -> None:
    report = Report("publish")
    size = publish.Size(rounds=1, count=8, window=4, places=())
    asyncio.run(publish.measure(report, 1, "interval", size))
    rows = rows_of(report)
    for metric in ("R1, interval, one after the other", "R1, interval, 4 at once"):
        assert rows[publish.LIMIT, metric] == 1.0
        assert (OURS, metric) in rows and ("nats-py publish", metric) in rows


def test_a_webhook_names_its_conversation_and_proves_itself() -> None:
    async def play() -> dict[int, bytes]:
        hooks = Hooks("secret", seats=2)
        hooks.prepare(2)
        return hooks.prepare(1)

    ((number, request),) = asyncio.run(play()).items()
    assert number == 3 and b'"number": 3' in request and b'"login": "s1"' in request
    assert b"X-Hub-Signature-256: sha256=" in request


def test_turns_are_waited_for_until_each_is_settled() -> None:
    async def play() -> None:
        settled = Settled()
        settled.at |= {1: 10.0, 2: 20.0}
        assert await settled.wait([2, 1], 0.0) == [20.0, 10.0]
        with pytest.raises(TimeoutError):
            await settled.wait([1, 3], 0.0)

    asyncio.run(play())
