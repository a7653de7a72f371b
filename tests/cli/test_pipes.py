"""What a pipe, a file, a dumb terminal and a reader that leaves get (field report C40)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess

import pytest

from tests.cli.conftest import COMMAND, HANDLE, REASON, FakeNode, Shell, event

pytestmark = pytest.mark.field("C40")

SETTINGS: list[dict[str, str | None]] = [
    {},
    {"TERM": "dumb"},
    {"NO_COLOR": "1", "TERM": "xterm-256color"},
    {"LC_ALL": "C"},
    {"PYTHONUNBUFFERED": "1"},
    {"FORCE_COLOR": "1", "TERM": "xterm-256color"},
    {"COLUMNS": "20"},
    {"PYTHONIOENCODING": "ascii"},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_whole_handle_is_in_a_pipe(node: FakeNode, shell: Shell, setting: dict[str, str]):
    run = shell.run("seats", env=shell.environment(**setting))
    assert run.returncode == 0
    assert run.stderr == b""
    assert b"\x1b" not in run.stdout
    lines = run.stdout.decode().splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:4] == ["HANDLE", "NAME", "KIND", "UNIT"]
    assert lines[2].startswith(HANDLE)
    assert "开发者" in lines[2] or "\\u5f00" in lines[2]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_json_parses_for_any_setting(node: FakeNode, shell: Shell, setting: dict[str, str]):
    environment = shell.environment(**setting)
    letters = json.loads(shell.run("dlq", "list", "-o", "json", env=environment).stdout)
    assert [row["reason"] for row in letters] == [REASON] * 3
    seats = json.loads(shell.run("seats", "-o", "json", env=environment).stdout)
    assert [row["name"] for row in seats] == ["Developer", "开发者"]
    lines = shell.run("events", "-o", "jsonl", env=environment).stdout.splitlines()
    assert [json.loads(line) for line in lines] == node.events


def test_a_reason_of_many_lines_stays_on_one_and_acts_on_no_terminal(node: FakeNode, shell: Shell):
    lines = shell.run("dlq", "list").stdout.decode().splitlines()
    assert len(lines) == 4
    assert "the handler raised\\n\\x1b[31mred" in lines[1]
    assert "\\u202eesrever" in lines[1]


def test_numbers_and_strings_are_the_nodes_own(node: FakeNode, shell: Shell):
    (line, *_) = shell.run("events", "-o", "jsonl").stdout.splitlines()
    assert b'"big":1208925819614629174706176' in line


@pytest.mark.parametrize("format", ["table", "json", "jsonl"])
def test_head_ends_a_listing_without_a_word(node: FakeNode, shell: Shell, format: str):
    node.events = [event(n, 2000) for n in range(500)]
    run = shell.script(
        f"set -o pipefail; crewlet events -o {format} | head -1 >first; echo ${{PIPESTATUS[0]}}"
    )
    assert run.stdout == b"0\n"
    assert run.stderr == b""
    assert (shell.folder / "first").read_bytes()


def test_a_follower_leaves_with_its_reader_while_nothing_happens(node: FakeNode, shell: Shell):
    """The three events fit the pipe: nothing more is written that could fail."""
    run = shell.script("crewlet events --follow -o jsonl | head -1; echo ${PIPESTATUS[0]}")
    assert run.stdout.splitlines()[-1] == b"0"
    assert run.stderr == b""


@pytest.mark.field("C35")
def test_a_follower_ends_with_0_when_the_node_stops(node: FakeNode, shell: Shell):
    with subprocess.Popen(
        [*COMMAND, "events", "--follow", "-o", "json"],
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert follower.stdout is not None
        head = b""
        while b"8000-000000000002" not in head:
            head += os.read(follower.stdout.fileno(), 65536)
        assert node.served is not None
        node.served.stop()
        rest, complaint = follower.communicate(timeout=20)
    assert follower.returncode == 0
    assert complaint == b""
    assert json.loads(head + rest) == node.events


def test_a_slow_reader_gets_every_byte(node: FakeNode, shell: Shell):
    node.events = [event(n, 3000) for n in range(200)]
    run = shell.script("crewlet events -o jsonl | (read -r first; echo $first; sleep 0.3; cat)")
    assert [json.loads(line) for line in run.stdout.splitlines()] == node.events


def test_a_pipe_that_does_not_block_gets_every_byte(node: FakeNode, shell: Shell):
    """Such a pipe is what a parent written in an event loop hands down."""
    node.events = [event(n, 3000) for n in range(200)]
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [*COMMAND, "events", "-o", "jsonl"], env=shell.environment(), stdout=writer
    ) as running:
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            lines = stream.read().splitlines()
    assert running.returncode == 0
    assert [json.loads(line) for line in lines] == node.events


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["seats", "events -o jsonl", "dlq list -o json", "version"])
def test_closed_descriptors_are_no_accident(
    node: FakeNode, shell: Shell, closed: str, command: str
):
    run = shell.script(f"crewlet {command} {closed}; echo $? >code")
    assert (shell.folder / "code").read_text() == "0\n"
    assert run.stderr == b""
    assert (run.stdout == b"") == (">&-" in closed.replace("2>&-", ""))


def test_a_file_gets_what_a_pipe_gets(node: FakeNode, shell: Shell):
    run = shell.script("crewlet seats >file; crewlet seats | cat")
    assert (shell.folder / "file").read_bytes() == run.stdout


def test_a_full_disk_is_a_failure_with_a_sentence(node: FakeNode, shell: Shell):
    run = shell.script("crewlet seats >/dev/full")
    assert run.returncode == 1
    assert run.stderr.startswith(b"crewlet: ")
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("setting", "coloured"),
    [({"TERM": "xterm-256color"}, True), ({"NO_COLOR": "1", "TERM": "xterm"}, False)],
    ids=["colours", "NO_COLOR"],
)
def test_a_terminal_gets_colours_unless_it_said_no(
    node: FakeNode, shell: Shell, setting: dict[str, str], coloured: bool
):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "seats"], env=shell.environment(**setting), stdout=theirs
    ) as running:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:
            pass  # how a terminal ends
    os.close(ours)
    assert running.returncode == 0
    assert (b"\x1b[" in shown) is coloured
    assert "…".encode() not in shown
