"""What pipes, files and dumb settings get from the commands while a real node answers."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.commands import shell
from tests.end_to_end.harness import COMPANY, Company, Running, until

pytestmark = pytest.mark.field("C40")

HANDLE = "h" + "0123456789" * 6 + "_z"
SETTINGS = [
    {},
    {"TERM": "dumb", "COLUMNS": "20"},
    {"NO_COLOR": "1", "TERM": "xterm-256color"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONUNBUFFERED": "1"},
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One node for all of this file: nothing here changes it but by sending."""
    assert len(HANDLE) == 63
    role = f"      - {{name: 开发者, handle: {HANDLE}}}\n"
    company = Company(tmp_path_factory.mktemp("pipes"), COMPANY.rstrip() + "\n" + role)
    recorder = company.folder / "recorder.py"
    recorder.write_text(recorder.read_text().replace("text[:40]", "text"))
    with company.running() as node:
        for n in range(30):
            node.send(HANDLE, f"{n} " + "long text " * 1000)
        node.idle()
        yield node


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_long_handle_and_a_foreign_name_are_whole(node: Running, setting: dict[str, str]) -> None:
    data = node.company.data
    found = shell(data, f"set -o pipefail; crewlet seats | grep {HANDLE}", setting)
    assert found.returncode == 0 and found.stderr == b""
    (line,) = found.stdout.splitlines()
    assert line.split()[0] == HANDLE.encode()
    assert "开发者".encode() in line or b"\\u5f00\\u53d1\\u8005" in line
    assert b"\x1b" not in line and "…".encode() not in line
    rows = json.loads(shell(data, "crewlet seats -o json | cat", setting).stdout)
    assert rows[-1]["name"] == "开发者"


def test_head_gets_its_line_and_nobody_complains(node: Running) -> None:
    run = shell(
        node.company.data,
        "crewlet events --last 1000 -o jsonl | head -1; echo ${PIPESTATUS[0]}",
    )
    line, code = run.stdout.splitlines()
    assert json.loads(line)["type"] and code == b"0" and run.stderr == b""


def test_a_follower_ends_with_its_reader(node: Running) -> None:
    """Nothing happens after the one line: only the closed pipe can tell the follower."""
    run = shell(
        node.company.data,
        "crewlet events --follow --last 1 -o jsonl | head -1; echo ${PIPESTATUS[0]}",
    )
    line, code = run.stdout.splitlines()
    assert json.loads(line)["type"] and code == b"0" and run.stderr == b""
    assert node.try_status()


def test_a_slow_reader_of_much_gets_every_byte(node: Running) -> None:
    data = node.company.data
    command = "crewlet events --last 1000 -o jsonl"
    run = shell(data, f'{command} | (read -r first; echo "$first"; sleep 0.3; cat)')
    assert len(run.stdout) > 3 * 65536
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert len([row for row in rows if row["type"] == "agent_turn_completed"]) >= 1
    whole = shell(data, f"{command} > {data}/file; cat {data}/file")
    assert whole.stdout == run.stdout


def test_closed_output_is_no_traceback(node: Running) -> None:
    run = shell(node.company.data, "crewlet seats >&-; echo $? >&2")
    assert run.stderr == b"0\n" and run.stdout == b""


def test_a_node_whose_terminal_went_away_works_on(tmp_path: Path) -> None:
    """`crewlet up | head -1`, and then no reader for what it would say of each turn."""
    company = Company(tmp_path)
    script = (
        f'crewlet up "{company.file}" --port 0 2>"{company.log}" | head -1; echo ${{PIPESTATUS[0]}}'
    )
    ended: list[bytes] = []
    runner = threading.Thread(
        target=lambda: ended.append(
            shell(company.data, script, {"T_SECRET": "s"}, within_s=60).stdout
        )
    )
    runner.start()
    node = _Elsewhere(company)
    try:
        until(node.try_status, 30, why="the node answers")
        for n in range(3):
            node.send("dev", f"turn {n}")
            until(lambda n=n: len(company.lines("end", "dev")) == n + 1, why="turns go on")
    finally:
        node.stop_by_pid()
        runner.join(30)
    said = ended[0].decode().splitlines()
    assert said == ["Company T: 4 seats, 3 of them agents", "0"]
    assert "Traceback" not in company.log.read_text()


class _Elsewhere(Running):
    """A node that somebody else started: known by its data folder alone."""

    def __init__(self, company: Company) -> None:
        self.company = company

    def stop_by_pid(self) -> None:
        status = self.try_status()
        if status is not None:
            os.kill(int(status["pid"]), signal.SIGTERM)
