"""What the benchmarks report, on sizes that show the shape and no speed."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks import completion, fleet, idle, mailboxes, pull
from benchmarks.peers import jobs
from benchmarks.report import Report
from benchmarks.rows import Rows, percentile
from crewlet.events import decode
from crewlet.inbound.letters import partition_key


def rows_of(report: Report) -> dict[tuple[str, str], float | None]:
    return {(row.subject, row.metric): row.ratio_to_limit for row in report.rows}


def test_an_event_is_500_bytes_and_names_its_conversation() -> None:
    bodies = pull.events(40, 20)
    assert {len(body) for body in bodies} == {500}
    keys = [partition_key(decode(body)) for body in bodies]
    assert len(set(keys[:20])) == 20
    assert keys[:20] == keys[20:]
    assert len({partition_key(decode(body)) for body in pull.events(40, 1)}) == 1


def test_pull_compares_everybody_with_the_raw_loop() -> None:
    report = Report("pull")
    asyncio.run(pull.measure(report, rounds=1, count=40))
    rows = rows_of(report)
    assert rows["raw pull", "throughput"] == 1.0
    for subject in ("nats-py fetch", "seat, one conversation", "seat, twenty conversations"):
        assert rows[subject, "throughput"] is not None
    assert all(row.value > 0 for row in report.rows if row.metric == "throughput")


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(report: Report, **sizes: object) -> None:
        assert not any(isinstance(one, pull.FastStream) for one in pull._contestants())

    monkeypatch.setattr(pull, "find_spec", lambda name: None)
    monkeypatch.setattr(jobs, "find_spec", lambda name: None)
    monkeypatch.setattr(pull, "measure", nothing)
    report = pull.run(quick=True)
    lack = "missing: not installed (pip install '.[bench]')"
    assert [(row.subject, row.metric, row.unit, row.value) for row in report.rows] == [
        (subject, lack, "", None) for subject in ("faststream", "dramatiq, redis", "celery, redis")
    ]
    assert report.as_table().count(lack) == 3


def test_a_task_queue_without_its_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("pull")
    monkeypatch.setattr(jobs, "find_spec", lambda name: name)
    monkeypatch.setattr(jobs, "find_redis", lambda: None)
    jobs.name_missing(report)
    assert jobs.job_queues("interval") == []
    lack = "missing: no redis-server on the PATH (apt install redis-server)"
    assert [row.metric for row in report.rows] == [lack, lack]


def test_idle_tells_client_and_server_apart() -> None:
    report = Report("idle")
    size = idle.Size(seats=3, settle_s=0.0, span_s=0.1, spans=2)
    asyncio.run(idle.measure(report, size))
    assert {row.subject for row in report.rows} == {"3 seats, 9 mailboxes attached"}
    assert [row.metric for row in report.rows] == [
        "client cpu, worst of 2 x 0 s",
        "server cpu, worst of 2 x 0 s",
        "client memory",
        "server memory, attaching",
    ]


def test_mailboxes_are_made_as_the_bare_loop_makes_them() -> None:
    report = Report("boot")
    asyncio.run(mailboxes.measure(report, seats=2, rounds=1))
    rows = rows_of(report)
    assert rows["bare create loop", "7 mailboxes"] == 1.0
    assert rows["ensure, none is there", "7 mailboxes"] is not None
    assert rows["ensure, all are there", "7 mailboxes"] is None


def test_completion_compares_every_form_with_a_bare_put() -> None:
    report = Report("completion")
    asyncio.run(completion.measure(report, sync=None, at_once=4, rounds=1, count=8))
    rows = rows_of(report)
    assert rows[f"{completion.LIMIT}, in memory", "4 at once"] == 1.0
    assert len(rows) == 6 and all(row.value > 0 for row in report.rows)


def test_a_seat_was_without_a_node_from_its_last_release_until_it_was_attached() -> None:
    rows = Rows(released={"a": [1.0, 5.0, 9.0], "b": [2.0]})
    assert rows.gaps({"a": 5.5, "b": 2.25, "never": 3.0}) == [0.25, 0.5]
    assert [percentile([0.25, 0.5], per_cent) for per_cent in (50, 99)] == [0.5, 0.5]
    assert percentile([], 99) == 0


@pytest.mark.long  # four processes, and one of them is killed
def test_fleet_follows_the_seats_from_node_to_node() -> None:
    report = Report("fleet")
    size = fleet.Size(settle_s=0.0, span_s=0.1, spans=1, join_s=0.5, ttl_s=2.0)
    asyncio.run(fleet.measure(report, 3, size))
    rows = rows_of(report)
    subject = "3 seats"
    assert {row.subject for row in report.rows} == {subject}
    assert rows[subject, "bare lease rows written"] == 1.0
    compared = ("first boot, seats taken", "second boot, seats taken", "handed over")
    for metric in (*compared, "killed, seats taken"):
        assert rows[subject, metric] is not None
    for metric in ("idle, client cpu, worst of 1 x 0 s", "handed over, without a node, p99"):
        assert (subject, metric) in rows
    values = {row.metric: row.value for row in report.rows}
    assert values["killed, its last seat works"] >= values["killed, its first seat works"] > 0.5
