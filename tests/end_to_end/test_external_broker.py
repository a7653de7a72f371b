"""Nodes on a server that somebody else runs: they share the seats, and take over from one that
was killed. And one data folder, which two processes may not share."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.commands import crewlet, nats_server, node_file, servers_below
from tests.end_to_end.harness import SECRET, Company, Running, comment, until

T_SECRET = {"T_SECRET": SECRET}


def _on(url: str, name: str) -> str:
    return f"stream: {{type: nats, url: '{url}'}}\nnode: {{id: {name}}}\n"


def _worked(node: Running) -> set[str]:
    """Triggers of turns whose completion is in the record."""
    rows = node.events("agent_turn_completed")
    return {trigger for row in rows if row["outcome"] == "ack" for trigger in row["triggers"]}


def _company(folder: Path) -> Company:
    folder.mkdir()
    return Company(folder)


LEASE = "lease: {ttl_s: 4, renew_s: 1, margin_s: 0.5}\n"


@pytest.mark.certifies(3, 8, 42, 272)
def test_two_nodes_share_the_seats_and_one_takes_over_when_the_other_dies(tmp_path: Path) -> None:
    first, second = _company(tmp_path / "first"), _company(tmp_path / "second")
    second.file, second.record = first.file, first.record  # one company, on two hosts
    with nats_server(tmp_path / "server") as url:
        node = first.start(*node_file(first, _on(url, "first") + LEASE))
        assert not servers_below(first.data), "it brings no broker of its own"
        assert node.post("issue_comment", comment(1, "@octo-dev look")) == 202
        until(lambda: first.lines("end", "dev"), why="it serves alone")
        other = second.start(*node_file(second, _on(url, "second") + LEASE))
        try:
            owners = until(lambda: _shared(node), why="each has a share")
            kept = node.send(owners["first"][0], "sleep 60")
            until(lambda: _runs_of(first, kept), why="a long turn runs")
            node.kill()
            began = time.monotonic()
            until(lambda: len(_runs_of(first, kept)) == 2, why="it runs again")
            assert time.monotonic() - began < 4 + 1 + 1, "TTL, a second, and the poll of a test"
            assert [row["attempt"] for row in _runs_of(first, kept)] == [1, 2]
        finally:
            node.kill()
            other.kill()


def _runs_of(company: Company, event_id: str) -> list[dict[str, Any]]:
    return [row for row in company.lines("start") if row["events"] == [event_id]]


def _shared(node: Running) -> dict[str, list[str]] | None:
    """The seats of each node once both have some."""
    owners: dict[str, list[str]] = {}
    for row in node.call("seats"):
        owners.setdefault(row["owner"], []).append(row["handle"])
    return owners if {"first", "second"} <= owners.keys() else None


def test_an_orderly_stop_leaves_the_company_to_the_next_at_once(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with nats_server(tmp_path / "server") as url:
        settings = node_file(company, _on(url, "one"))
        node = company.start(*settings)
        sent = node.send("dev", "before")
        until(lambda: company.lines("end", "dev"), why="it serves")
        assert node.stop() == 0
        with company.running(*settings) as again:
            again.idle()
            assert [row["events"] for row in company.lines("end")] == [[sent]]


@pytest.mark.certifies(14)
def test_a_server_that_takes_less_than_our_largest_is_refused(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with nats_server(tmp_path / "server", max_payload=2**20) as url:
        settings = node_file(company, _on(url, "one"))
        up = ("up", str(company.file), *settings, "--port", "0")
        refused = crewlet(company.data, *up, env=T_SECRET, within_s=30)
    assert refused.returncode == 3
    assert "max_payload" in refused.stderr and str(2**20) in refused.stderr
    assert "Traceback" not in refused.stderr and refused.stdout == ""


@pytest.mark.long  # ten seconds of dialling
def test_a_server_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody's
        settings = node_file(company, _on(f"nats://127.0.0.1:{taken.getsockname()[1]}", "one"))
        up = ("up", str(company.file), *settings, "--port", "0")
        refused = crewlet(company.data, *up, env=T_SECRET, within_s=30)
    assert refused.returncode == 1
    assert "could be reached" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.field("C32")
def test_a_data_folder_is_one_processs_at_a_time(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        up = ("up", str(company.file), "--data", str(company.data), "--port", "0")
        refused = crewlet(company.data, *up, env=T_SECRET, within_s=5)
        assert refused.returncode == 3
        assert f"pid {node.process.pid}" in refused.stderr and str(company.data) in refused.stderr
        node.send("dev", "undisturbed")
        until(lambda: company.lines("end", "dev"), why="the first goes on")
        assert len(servers_below(company.data)) == 1
    with company.running() as again:  # a lock dies with its process: nothing to clean up
        assert again.try_status()
