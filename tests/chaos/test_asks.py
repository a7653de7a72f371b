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

from actors.admin import NoAnswer
from crewlet.inbound.ids import derived_id
from tests.chaos.pair import WITHIN_S, Pair
from tests.end_to_end.commands import nats_server
from tests.end_to_end.harness import Company, until

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


def read_by_dev(pair: Pair) -> bool:
    ids = [derived_id(row["channel"], "message") for row in pair.call("channel.ls", all=True)]
    return bool(set(ids) & pair.worked("dev").keys())


def _play(folder: Path, place: str) -> None:
    with nats_server(folder / "server") as url:
        pair = Pair(folder, url, COMPANY, "asking_work", WORK)
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
