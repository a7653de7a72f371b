"""kill -9 of the node and of its broker: nothing accepted is lost, nothing finished runs twice."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.harness import Company, comment, issue, until


@pytest.mark.certifies(42, 54, 89, 135)
def test_a_node_killed_in_a_turn_runs_it_again_at_once(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    finished = node.send("dev", "finished before")
    until(lambda: company.lines("end", "dev"), why="the first turn has ended")
    node.idle()
    node.send("dev", "sleep 30")
    until(lambda: len(company.lines("start", "dev")) == 2, why="the long turn runs")
    waiting = node.send("dev", "waits behind it")
    node.send("ops", "other mail")
    until(lambda: company.lines("end", "ops"), why="another seat goes on meanwhile")
    node.kill()
    with_long = [row for row in company.lines("start", "dev") if row["text"] == "sleep 30"]
    assert len(with_long) == 1
    again = company.start()
    try:
        # At once: not after the ack window of half an hour.
        started = until(
            lambda: [r for r in company.lines("start", "dev") if r["text"] == "sleep 30"][1:],
            within_s=10,
            why="the interrupted turn runs again",
        )
        assert started[0]["attempt"] == 2, "the count rides on the message"
        ends = [row["events"] for row in company.lines("end")]
        assert ends.count([finished]) == 1
        assert waiting in {
            e for row in company.lines("start") for e in row["events"]
        } or again.call("seats")
    finally:
        again.kill()


def _round(company: Company, number: int) -> None:
    """One kill in the middle of a burst, then a start: every message is worked."""
    node = company.start()
    sent = [node.send(seat, f"round {number} {n}") for n in range(6) for seat in ("dev", "ops")]
    until(lambda: company.lines("start"), why="work has begun")
    node.kill()
    after = company.start()
    after.idle()
    ended = [event for row in company.lines("end") for event in row["events"]]
    assert set(sent) <= set(ended), "nothing accepted is lost"
    completed = [e for row in after.events("agent_turn_completed") for e in row["triggers"]]
    assert len(set(completed)) == len(completed), "no completed turn runs twice"
    assert after.stop() == 0


@pytest.mark.certifies(42, 89, 135)
def test_no_message_is_lost_and_no_completed_turn_runs_twice(tmp_path: Path) -> None:
    _round(Company(tmp_path), 0)


@pytest.mark.long
def test_twenty_kills_of_the_node(tmp_path: Path) -> None:
    company = Company(tmp_path)
    for number in range(20):
        _round(company, number)


def _broker_of(pid: int) -> psutil.Process:
    children = psutil.Process(pid).children()
    return next(child for child in children if "nats-server" in child.name())


def _broker_round(company: Company, number: int) -> None:
    with company.running() as node:
        sent = [node.send("dev", f"before {number}")]
        _broker_of(node.process.pid).send_signal(signal.SIGKILL)
        statuses = [
            node.post(
                "issue_comment", comment(100 + n, "please, @octo-dev"), delivery=f"k{number}-{n}"
            )
            for n in range(5)
        ]
        assert set(statuses) <= {202, 503}
        sent.append(until(lambda: _try_send(node, f"after {number}"), why="publishing works again"))
        node.idle()
        ended = {e for row in company.lines("end") for e in row["events"]}
        assert set(sent) <= ended
        texts = [row["key"] for row in company.lines("end", "dev") if row["key"]]
        for n, status in enumerate(statuses):
            if status == 202:
                assert f"github:octo/site#{100 + n}" in texts


def _try_send(node: object, text: str) -> str:
    try:
        return node.send("dev", text)  # type: ignore[attr-defined]
    except Exception:
        return ""


@pytest.mark.certifies(4, 6)
def test_the_seats_go_on_when_a_killed_broker_is_back(tmp_path: Path) -> None:
    _broker_round(Company(tmp_path), 0)


@pytest.mark.long
def test_twenty_kills_of_the_broker(tmp_path: Path) -> None:
    company = Company(tmp_path)
    for number in range(20):
        _broker_round(company, number)


@pytest.mark.certifies(4)
def test_no_broker_outlives_a_killed_node(tmp_path: Path) -> None:
    company = Company(tmp_path)
    node = company.start()
    broker = _broker_of(node.process.pid)
    assert node.post("issues", issue(1)) == 202
    node.kill()
    until(lambda: not broker.is_running() or broker.status() == psutil.STATUS_ZOMBIE)
    # The socket file may be left behind; the next start takes it over.
    with company.running() as again:
        assert again.try_status()
