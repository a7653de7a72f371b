"""A node without data, in a process of its own: a leaf of a member. It claims seats and works their
mail, gives them up and is taken over from, and goes on when either server is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from actors.admin import CallFailed, NoAnswer
from tests.broker.cluster import SECRET as CLUSTER_SECRET
from tests.broker.cluster import free_ports
from tests.broker.leaves import LEAF_SECRET
from tests.end_to_end.commands import broker_of, crewlet, node_file
from tests.end_to_end.harness import SECRET, Company, Running, until

ENV = {
    "T_SECRET": SECRET,
    "CREWLET_CLUSTER_SECRET": CLUSTER_SECRET,
    "CREWLET_LEAF_SECRET": LEAF_SECRET,
}

REST = "  sync: interval\nlease: {{ttl_s: 4, renew_s: 1, margin_s: 0.5}}\nnode: {{id: {name}}}\n"
MEMBER = (
    "stream:\n  cluster: {{port: {port}, leaf_port: {leaves}, peers: ['127.0.0.1:{port}']}}\n"
) + REST
LEAF = "stream:\n  leaf: {{urls: ['127.0.0.1:{leaves}']}}\n" + REST


def _company(folder: Path) -> Company:
    folder.mkdir()
    return Company(folder)


def _seats_of(node: Running, name: str) -> list[str]:
    try:
        return [row["handle"] for row in node.call("seats") if row["owner"] == name]
    except (CallFailed, NoAnswer):
        return []


def _sent(node: Running, seat: str, text: str) -> str:
    """Accepted at last: while a server is away nobody can say that it is stored."""

    def take() -> str:
        try:
            return node.send(seat, text)
        except (CallFailed, NoAnswer):
            return ""

    return str(until(take, 40, why=f"{text} is taken"))


def _worked(company: Company, event_id: str) -> list[dict[str, Any]]:
    return [row for row in company.lines("end") if event_id in row["events"]]


@pytest.mark.certifies(9, 10)
def test_a_leaf_claims_works_hands_off_and_outlives_both_servers(tmp_path: Path) -> None:
    home, away = _company(tmp_path / "home"), _company(tmp_path / "away")
    away.file, away.record = home.file, home.record  # one company, on two hosts
    port, leaves = free_ports(2)
    member = home.start(
        *node_file(home, MEMBER.format(port=port, leaves=leaves, name="home")), env=ENV
    )
    leaf = away.start(*node_file(away, LEAF.format(leaves=leaves, name="away")), env=ENV)
    try:
        mine = str(until(lambda: _seats_of(member, "away"), 30, why="the leaf has a seat")[0])
        first = _sent(member, mine, "by the leaf")
        until(lambda: _worked(home, first), why="the leaf works what came in at the member")
        assert not list(away.data.rglob("jetstream")), "it keeps streams"

        broker_of(leaf.process.pid).kill()
        second = _sent(leaf, mine, "its server was killed")
        until(lambda: _worked(home, second), 40, why="it goes on with another server of its own")

        broker_of(member.process.pid).kill()
        third = _sent(leaf, mine, "the member's server was killed")
        until(lambda: _worked(home, third), 40, why="it goes on with the member's next server")

        until(lambda: "away" in _owners(member), 30, why="both are in one fleet again")
        moved = crewlet(away.data, "seat", "move", mine, "home", within_s=40)
        assert moved.returncode == 0, moved.stderr
        until(lambda: mine in _seats_of(member, "home"), 40, why="it is handed over")
        fourth = _sent(leaf, mine, "at home now")
        until(lambda: _worked(home, fourth), 40, why="the member works it")
        for event in (first, second, third, fourth):
            assert len(_worked(home, event)) == 1, "a turn that was finished ran again"
        assert CLUSTER_SECRET not in home.log.read_text()
        assert LEAF_SECRET not in home.log.read_text() + away.log.read_text()
    finally:
        for node in (leaf, member):
            try:
                node.stop()
            except subprocess.TimeoutExpired:
                node.kill()


def _owners(node: Running) -> set[str]:
    try:
        return {row["owner"] for row in node.call("seats")}
    except (CallFailed, NoAnswer):
        return set()


@pytest.mark.certifies(10, 42)
def test_what_a_leaf_that_died_had_in_its_hands_is_worked_by_the_member(tmp_path: Path) -> None:
    home, away = _company(tmp_path / "home"), _company(tmp_path / "away")
    away.file, away.record = home.file, home.record
    port, leaves = free_ports(2)
    member = home.start(
        *node_file(home, MEMBER.format(port=port, leaves=leaves, name="home")), env=ENV
    )
    leaf = away.start(*node_file(away, LEAF.format(leaves=leaves, name="away")), env=ENV)
    try:
        mine = str(until(lambda: _seats_of(member, "away"), 30, why="the leaf has a seat")[0])
        kept = _sent(member, mine, "sleep 60")

        def starts() -> list[int]:
            return [row["attempt"] for row in home.lines("start") if kept in row["events"]]

        until(starts, why="a long turn runs at the leaf")
        leaf.kill()
        until(lambda: starts() == [1, 2], 15, why="it runs again, at the member")
    finally:
        leaf.kill()
        member.kill()
