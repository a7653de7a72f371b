"""A command that suspends, a worker outside that says what became of it, and a node that dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.commands import crewlet, shell
from tests.end_to_end.harness import Company, Running, comment, until

WORKER = """
import json, os, sys
turn = json.load(sys.stdin)
text = turn["events"][0]["body"]
with open(sys.argv[1], "a") as file:
    line = {"kind": "end", "seat": turn["seat"]["handle"],
            "texts": [e["body"] for e in turn["events"]]}
    file.write(json.dumps(line) + "\\n")
if "please build" in text:
    with open(os.environ["CREWLET_OUTCOME"], "w") as file:
        json.dump({"type": "suspend", "run_id": "build 1"}, file)
else:
    print("done: " + text[:40])
"""


class Builds(Company):
    """Company T whose seats begin a build, and work everything else at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "recorder.py").write_text(WORKER)

    def texts(self) -> list[list[str]]:
        return [row["texts"] for row in self.lines("end", "dev")]


def run_row(node: Running) -> dict[str, Any]:
    answer = crewlet(node.company.data, "run", "ls", "dev", "-o", "json")
    assert answer.returncode == 0, answer.stderr
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows[0] if rows else {"state": "", "holds": False}


def stands(node: Running, state: str) -> None:
    until(lambda: run_row(node)["state"] == state, why=f"the run is {state}")


@pytest.mark.certifies(17, 137, 138)
def test_a_run_outlives_its_node_and_is_completed_from_the_command_line(tmp_path: Path) -> None:
    company = Builds(tmp_path)
    node = company.start()
    asked = node.send("dev", "please build it")
    stands(node, "running")
    node.send("dev", "waits")
    node.kill()
    with company.running() as again:
        assert run_row(again)["holds"]
        why = crewlet(company.data, "why", "dev", "-o", "json")
        assert json.loads(why.stdout)[0]["code"] == "run"
        assert company.texts() == [["please build it"]], "it is begun once, and holds the rest"
        said = shell(company.data, "echo 'all green' | crewlet run complete dev 'build 1' -")
        assert said.returncode == 0, said.stderr
        again.idle()
        until(lambda: len(company.texts()) == 3, why="its mail and its result are worked")
        assert sorted(company.texts()[1:]) == [["all green"], ["waits"]]
        assert not run_row(again)["holds"]
        ends = again.events("agent_turn_completed")
        assert [row["triggers"] for row in ends if row["outcome"] == "suspend"] == [[asked]]
        (resumed,) = [row for row in again.events("agent_turn_started") if row["resumed"]]
        assert resumed["turn_id"] == next(
            row["turn_id"] for row in ends if row["outcome"] == "suspend"
        )
        late = crewlet(company.data, "run", "fail", "dev", "build 1")
        assert late.returncode == 3 and "completed already" in late.stderr


@pytest.mark.certifies(141, 143)
def test_a_comment_answers_the_question_of_a_run(tmp_path: Path) -> None:
    company = Builds(tmp_path)
    with company.running() as node:
        assert node.post("issue_comment", comment(7, "@octo-dev please build it")) == 202
        stands(node, "running")
        parked = crewlet(company.data, "run", "ask", "dev", "build 1", "Which branch?")
        assert parked.returncode == 0, parked.stderr
        stands(node, "asking")
        assert node.post("issue_comment", comment(7, "main, of course")) == 202
        stands(node, "resuming")
        taken = crewlet(company.data, "run", "take", "dev", "build 1", "-o", "json")
        assert "main, of course" in json.loads(taken.stdout)["text"]
        assert node.post("issue_comment", comment(7, "and a changelog")) == 202
        failed = crewlet(company.data, "run", "fail", "dev", "build 1", "no such branch")
        assert failed.returncode == 0, failed.stderr
        until(lambda: len(company.lines("end", "dev")) > 1, why="the seat goes on")
        node.idle()
        texts = [text for turn in company.texts() for text in turn]
        assert "no such branch" in texts and any("and a changelog" in text for text in texts)
        assert not any("main, of course" in text for text in texts), "it was the run's"
        assert len(node.events("sandbox_run_answered")) == 1
