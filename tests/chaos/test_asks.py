"""A question between seats on two nodes: one question, one answer, one end, through a kill -9 of
either node at every step.

Both nodes are armed with the same place: whichever comes there first dies there, and so does
whoever takes its work over, once. Then both are started again, unarmed.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from actors.admin import CallFailed, NoAnswer, NotRunning
from crewlet.inbound.ids import derived_id
from tests.end_to_end.commands import nats_server, node_file
from tests.end_to_end.harness import Company, Running, until

COMPANY = """
name: Company T
handler: {python: "asking_work:work", timeout_s: 60}
roles:
  - {name: Dev, handle: dev}
  - {name: Qa, handle: qa}
"""

WORK = """
async def work(turn):
    kind = turn.events[0].type
    if kind == "task_assigned":
        return await turn.ask("qa", turn.text)
    return turn.turn_id if kind == "a2a_request" else "read " + turn.text
"""

COMMAND = """
import json, subprocess, sys
turn = json.load(sys.stdin)
if turn["events"][0]["type"] == "task_assigned":
    ask = [sys.executable, "-m", "crewlet", "ask"]
    if subprocess.run([*ask, "nobody", "hello"]).returncode != 3:
        sys.exit("that should have been refused")
    sys.exit(subprocess.run([*ask, "qa", "-"], input=b"from a command").returncode)
print("read", turn["events"][0]["body"])
"""

LEASE = "lease: {ttl_s: 4, renew_s: 1, margin_s: 0.5}\n"

PLACES = (
    "after_channel_opened",
    "after_request_published",
    "after_answer_kept",
    "before_complete",
    "after_complete_before_ack",
    "after_answer_published",
    "after_channel_closed",
    "before_turn",
    "after_effect",
)
EVERY_RUN = ("after_request_published", "after_answer_kept", "after_answer_published")

WITHIN_S = 60.0


class Pair:
    """Two nodes of one company on one server."""

    def __init__(self, folder: Path, url: str, work: str = WORK) -> None:
        self.companies = [self._company(folder / name, work) for name in ("first", "second")]
        self.nodes: list[Running] = []
        self._url = url

    def _company(self, folder: Path, work: str) -> Company:
        folder.mkdir()
        (folder / "asking_work.py").write_text(work)
        return Company(folder, COMPANY)

    def start(self, at: int, failpoint: str = "") -> Running:
        company = self.companies[at]
        text = f"stream: {{type: nats, url: '{self._url}'}}\nnode: {{id: n{at + 1}}}\n{LEASE}"
        env = {"CREWLET_TEST_BUILD": "1", "CREWLET_FAILPOINT": failpoint}
        return company.start(*node_file(company, text), env=env, wait=False)

    def boot(self, failpoint: str = "") -> None:
        self.nodes = [self.start(at, failpoint) for at in (0, 1)]
        for node in self.nodes:
            node.wait_until_up()
        until(self._shared, WITHIN_S, why="each node has a seat")

    def _shared(self) -> bool:
        owners = {row["handle"]: row["owner"] for row in self.nodes[0].call("seats")}
        return {owners["dev"], owners["qa"]} == {"n1", "n2"}

    def revive(self) -> None:
        """Start whoever is dead, unarmed."""
        for at, node in enumerate(self.nodes):
            if node.process.poll() is not None:
                self.nodes[at] = self.start(at)

    @property
    def dead(self) -> int:
        return sum(node.process.poll() is not None for node in self.nodes)

    def call(self, verb: str, **args: Any) -> list[dict[str, Any]]:
        """The answer of whichever node lives."""
        for node in self.nodes:
            with contextlib.suppress(NotRunning, NoAnswer, CallFailed):
                return node.call(verb, **args)
        return []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return self.call("events", last=5000, type=kind)

    def worked(self, seat: str) -> dict[str, str]:
        """Which turn worked each trigger. A node that is killed between the completion and its
        record leaves the word of whoever finds the trigger worked."""
        rows = [row for row in self.events("agent_turn_completed") if row["outcome"] == "ack"]
        done = [(row, trigger, row["turn_id"]) for row in rows for trigger in row["triggers"]]
        skips = self.events("turn_trigger_skipped")
        done += [(row, row["trigger_id"], row["worked_by"]) for row in skips]
        return {trigger: turn for row, trigger, turn in done if row["agent_role"] == seat}

    def end(self) -> None:
        for node in self.nodes:
            node.end()


def read_by_dev(pair: Pair) -> bool:
    ids = [derived_id(row["channel"], "message") for row in pair.call("channel.ls", all=True)]
    return bool(set(ids) & pair.worked("dev").keys())


def _play(folder: Path, place: str) -> None:
    with nats_server(folder / "server") as url:
        pair = Pair(folder, url)
        try:
            pair.boot(f"{place}:1=kill")
            with contextlib.suppress(NoAnswer):  # it may die of this very message
                pair.nodes[0].send("dev", "is 1.2 fit to go?")
            until(lambda: pair.dead, WITHIN_S, why=f"a node dies {place}")
            # The other one takes over, and may die of the same: then both begin again.
            deadline = time.monotonic() + 12.0
            while pair.dead < 2 and time.monotonic() < deadline and not read_by_dev(pair):
                time.sleep(0.1)
            pair.revive()
            until(lambda: _over(pair), WITHIN_S, why="dev has read it, and the channel is closed")
            time.sleep(2.0)  # for what should not come
            _judge(pair)
        finally:
            pair.end()


def _over(pair: Pair) -> bool:
    pair.revive()
    return bool(read_by_dev(pair) and pair.events("a2a_channel_closed"))


def _judge(pair: Pair) -> None:
    (row,) = pair.call("channel.ls", all=True)
    (turn,) = pair.worked("qa").values()
    (opened,) = pair.events("a2a_channel_opened")
    (question, reply) = pair.events("a2a_message_sent")
    (closed,) = pair.events("a2a_channel_closed")
    assert {one["channel_id"] for one in (opened, question, reply, closed)} == {row["channel"]}
    assert (row["state"], row["closed_by"]) == ("closed", "qa")
    assert (question["sender"], reply["sender"]) == ("dev", "qa")
    assert reply["text"] == turn, "the answer is that of the turn that completed"
    assert (closed["closed_by"], closed["turn_id"]) == ("qa", turn)
    assert closed["messages"] == 2 and closed["duration_s"] >= 0
    completed = [one for one in pair.events("agent_turn_completed") if one["outcome"] == "ack"]
    read = [one["answer"] for one in completed if str(one["answer"]).startswith("read ")]
    assert read in ([], [f"read {turn}"]), "once, and what was answered"
    assert len(pair.worked("dev")) == 2
    assert pair.call("dlq.list") == []


@pytest.mark.certifies(213, 214, 215, 220)
@pytest.mark.field("C26")
@pytest.mark.parametrize(
    "place",
    [pytest.param(one, marks=() if one in EVERY_RUN else pytest.mark.long) for one in PLACES],
)
def test_a_kill_at_any_step_leaves_one_question_one_answer_one_end(
    place: str, tmp_path: Path
) -> None:
    _play(tmp_path, place)


@pytest.mark.certifies(213, 217)
def test_a_command_asks_through_the_socket_of_its_node(tmp_path: Path) -> None:
    company = Company(tmp_path, COMPANY)
    (tmp_path / "agent.py").write_text(COMMAND)
    handler = f"handler: {{command: [{json.dumps(sys.executable)}, agent.py]}}"
    text = company.file.read_text().replace(
        'handler: {python: "asking_work:work", timeout_s: 60}', handler
    )
    company.file.write_text(text)
    with company.running() as node:
        node.send("dev", "go")

        def read() -> list[dict[str, Any]]:
            rows = node.events("agent_turn_completed")
            return [row for row in rows if row["answer"] == "read read from a command"]

        until(read, WITHIN_S, why="the answer to the command's question is read")
        (closed,) = until(lambda: node.events("a2a_channel_closed"), WITHIN_S)
        assert closed["participants"] == ["dev", "qa"] and closed["closed_by"] == "qa"
