"""A turn that asks for the drain which waits for turns: real processes from end to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import COMMAND, Shell

AGENT = """
import json, os, subprocess, sys, time
turn = json.load(sys.stdin)
if turn["seat"]["handle"] == "ops":
    run = subprocess.run(COMMAND + [WORDS], capture_output=True, text=True, timeout=60)
    print(json.dumps({"code": run.returncode}))
else:
    while not os.path.exists("go"):
        time.sleep(0.05)
    print("done")
"""

COMPANY = """
name: Acme
handler: {command: [PYTHON, agent.py]}
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""

WITHIN_S = 40.0


@pytest.fixture
def up(shell: Shell) -> Iterator[Callable[[list[str]], None]]:
    """Starts a node whose ops asks, in its turn, for what these words say."""
    started: list[subprocess.Popen[bytes]] = []

    def start(words: list[str]) -> None:
        line = f"COMMAND = {COMMAND!r}\n" + AGENT.replace("[WORDS]", repr(words))
        (shell.folder / "agent.py").write_text(line)
        company = COMPANY.replace("PYTHON", sys.executable)
        (shell.folder / "acme.yaml").write_text(company)
        left = "".join(line for line in company.splitlines(True) if "Ops" not in line)
        (shell.folder / "without-ops.yaml").write_text(left)
        command = [*COMMAND, "up", "acme.yaml", "--port", "0", "--quiet"]
        with (shell.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=shell.folder, env=shell.environment(), stdout=log, stderr=log
            )
        started.append(process)
        until(lambda: shell.run("status").returncode == 0)
        until(lambda: all(row["owner"] for row in rows(shell, "seats")))

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(WITHIN_S)
        finally:
            process.kill()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(shell: Shell, *words: str) -> list[dict[str, object]]:
    run = shell.run(*words, "-o", "jsonl")
    assert run.returncode == 0, run.stderr
    return [json.loads(row) for row in run.stdout.splitlines()]


def ended(shell: Shell, seat: str) -> list[dict[str, object]]:
    events = rows(shell, "events", "--last", "1000", "--type", "agent_turn_completed")
    return [event for event in events if event["agent_role"] == seat]


def worked(shell: Shell, seat: str) -> int:
    """How many messages its finished turns were for."""
    triggers = [event["triggers"] for event in ended(shell, seat)]
    return sum(len(each) for each in triggers if isinstance(each, list))


@pytest.mark.field("C11")
@pytest.mark.parametrize(
    "words",
    [
        ["node", "drain", "--wait"],
        ["shell", "-c", "seat quiesce ops"],
        ["apply", "without-ops.yaml", "--wait"],
    ],
    ids=" ".join,
)
def test_the_turn_that_asks_ends_by_itself_and_once(
    shell: Shell, up: Callable[[list[str]], None], words: list[str]
):
    up(words)
    for n in range(3):
        assert shell.run("send", "dev", f"work {n}").returncode == 0
    until(lambda: bool(rows(shell, "ps")))
    assert shell.run("send", "ops", "repair, then ask").returncode == 0
    if "drain" in words:
        until(lambda: rows(shell, "status")[0]["state"] == "draining")
        assert {row["seat"] for row in rows(shell, "ps")} == {"dev", "ops"}, "it waits for dev"
        (shell.folder / "go").touch()
    until(lambda: bool(ended(shell, "ops")))
    (shell.folder / "go").touch()
    (own,) = ended(shell, "ops")
    answer = json.loads(str(own["answer"]))
    assert (own["outcome"], answer["code"]) == ("ack", 0)
    if "apply" in words:
        assert [row["handle"] for row in rows(shell, "seats")] == ["dev"]
    if "drain" in words:
        assert rows(shell, "ps") == [], "it was told that nothing runs while something ran"
        assert shell.run("node", "undrain").returncode == 0
    until(lambda: worked(shell, "dev") == 3)
    assert {event["outcome"] for event in ended(shell, "dev")} == {"ack"}
    assert len(ended(shell, "ops")) == 1
