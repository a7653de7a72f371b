"""A company that is applied anew while two real nodes work it, on a server of somebody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.commands import crewlet, nats_server, node_file
from tests.end_to_end.harness import SECRET, Company, Running, issue, until

NEW = "      - {name: Doc, handle: doc, contact: {github_login: octo-doc}}\n"


@contextmanager
def two_nodes(folder: Path) -> Iterator[tuple[Running, Running]]:
    """They have one recorder, so that what either does stands in one file."""
    (folder / "first").mkdir()
    first = Company(folder / "first")
    second = Company(folder / "first")
    second.data = folder / "second"
    second.log = folder / "second.log"
    with nats_server(folder / "server") as url:
        nodes: list[Running] = []
        try:
            for name, company in (("n1", first), ("n2", second)):
                settings = f"stream: {{type: nats, url: '{url}'}}\nnode: {{id: {name}}}\n"
                nodes.append(company.start(*node_file(company, settings, f"{name}.yaml")))
            yield nodes[0], nodes[1]
        finally:
            for node in nodes:
                node.end()


def assigned(node: Running, number: int, login: str) -> None:
    payload = issue(number, action="assigned", assignee={"login": login})
    payload["issue"]["assignees"] = [{"login": login}]
    assert node.post("issues", payload) == 202


@pytest.mark.certifies(21, 123, 124, 132)
def test_a_revision_that_is_applied_on_one_node_is_worked_by_on_both(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (one, two):
        text = one.company.file.read_text()
        after = tmp_path / "first" / "after.yaml"
        after.write_text(text.replace("      - {name: Qa,", f"{NEW}      - {{name: Qa,"))
        told = crewlet(one.company.data, "apply", str(after), "--wait", "-o", "json", within_s=60)
        assert told.returncode == 0, told.stderr
        row = json.loads(told.stdout)
        assert (row["revision"], row["added"], row["removed"]) == (2, ["doc"], [])
        assert {node["node"]: node["state"] for node in row["nodes"]} == {
            "n1": "applied",
            "n2": "applied",
        }
        for number, node in enumerate((one, two), 1):
            assigned(node, number, "octo-doc")
        until(lambda: len(one.company.lines("end", "doc")) == 2, why="both deliveries are worked")

        broken = tmp_path / "first" / "broken.yaml"
        broken.write_text(after.read_text().replace("handle: doc", "handel: doc"))
        refused = crewlet(two.company.data, "apply", str(broken))
        assert refused.returncode == 2 and "did you mean 'handle'?" in refused.stderr
        assert f"{broken}:" in refused.stderr, "it names the file that was given"
        assert [row["revision"] for row in two.call("revision.ls")] == [2, 1]
        shown = crewlet(two.company.data, "revision", "show", "2")
        assert shown.stdout == after.read_text() and SECRET not in shown.stdout

        # It starts with the file that it has, which is older: the store decides, and says so.
        assert two.stop() == 0
        settings = ("--node", str(tmp_path / "first" / "n2.yaml"))
        again = two.company.start(*settings)
        try:
            assert [row["handle"] for row in again.call("seats")].count("doc") == 1
            assert "revision 2 is active" in two.company.log.read_text()
        finally:
            again.end()


def test_a_company_that_was_edited_is_taken_where_nobody_else_could_have_changed_it(
    tmp_path: Path,
) -> None:
    """One node with a broker of its own: what is in the file at its start is what was meant."""
    company = Company(tmp_path)
    with company.running() as node:
        assert node.call("status")[0]["revision"] == 1
    company.file.write_text(company.file.read_text().replace("handle: ops", "handle: ops2"))
    with company.running() as node:
        assert node.call("status")[0]["revision"] == 2
        assert "ops2" in {row["handle"] for row in node.call("seats")}
        node.send("ops2", "hello")
        until(lambda: company.lines("end", "ops2"), why="it works")
