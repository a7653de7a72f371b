"""`crewlet shell -c`, scripts, and the same verbs as commands: real processes, a real socket."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from crewlet.cli.app import app
from crewlet.cli.console import LEAVE, console, run_line
from tests.cli.conftest import COMMAND, Shell
from tests.cli.operated import FILE, Running
from tests.cli.test_guide import commands

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "shell.md"


@pytest.fixture
def here(operated: Running, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Lines run in this process go to the node of the test."""
    monkeypatch.setenv("CREWLET_DATA", str(shell.folder / "data"))
    monkeypatch.delenv("CREWLET_ON", raising=False)
    return operated


# -- -c and scripts -----------------------------------------------------------------------


def test_a_line_is_a_command_without_the_word_crewlet(operated: Running, shell: Shell):
    by_shell = shell.run("shell", "-c", "seat show dev -o json")
    by_command = shell.run("seat", "show", "dev", "-o", "json")
    assert by_shell.returncode == by_command.returncode == 0
    assert by_shell.stdout == by_command.stdout
    assert json.loads(by_shell.stdout)["handle"] == "dev"


def test_lines_run_in_order_and_the_format_is_for_all_of_them(operated: Running, shell: Shell):
    run = shell.run(
        "shell", "-o", "jsonl", "-c", "seat hold dev\nwhy dev", "-c", "seat release dev"
    )
    assert run.returncode == 0, run.stderr
    held, why, released = map(json.loads, run.stdout.splitlines())
    assert (held["changed"], why["code"], released["changed"]) == (True, "held", True)


def test_the_first_line_that_fails_ends_it_with_its_code(operated: Running, shell: Shell):
    run = shell.run("shell", "-c", "seat hold nobody", "-c", "seat hold dev")
    assert run.returncode == 3
    assert b"there is no seat 'nobody' in this company; agent seats: dev, ops" in run.stderr
    assert shell.run("shell", "-c", "seat hold").returncode == 2
    assert json.loads(shell.run("seat", "show", "dev", "-o", "json").stdout)["holds"] == []


def test_a_script_comes_from_a_pipe(operated: Running, shell: Shell):
    lines = b"# a comment\n\nseat hold dev   # why not\nexit\nseat hold ops\n"
    assert shell.run("shell", stdin=lines).returncode == 0
    held = [
        json.loads(shell.run("seat", "show", seat, "-o", "json").stdout)["holds"]
        for seat in ("dev", "ops")
    ]
    assert held == [["operator"], []]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("seets", "did you mean seats"),
        ("__import__('os')", "there is no verb"),
        ("up", "there is no verb"),
        ("shell", "there is no verb"),
        ("seat hold 'dev", "a quote has to be closed"),
        ("seat hold dev \\", "a \\ escapes nothing"),
        ("!ls", "there is no verb"),
        ("$(reboot)", "there is no verb"),
        ("help seat hodl", "did you mean hold"),
        ("help nope", "`help` lists them all"),
    ],
)
def test_what_is_no_verb_is_refused_with_the_way_out(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
):
    assert run_line(line) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_without_a_node_the_shell_says_so(shell: Shell):
    for arguments in (("-c", "ps"), ()):
        run = shell.run("shell", *arguments, stdin=b"ps\n")
        assert run.returncode == 3
        assert b"no crewlet node runs on" in run.stderr


def test_another_node_is_asked_by_way_of_this_one(operated: Running, shell: Shell):
    for on in (("--on", "n1"), ()):
        run = shell.run("shell", *on, "-c", "status -o json")
        assert json.loads(run.stdout)["node"] == "n1"
    for arguments in (("shell", "--on", "n7", "-c", "ps"), ("ps", "--on", "n7")):
        run = shell.run(*arguments)
        assert (run.returncode, run.stderr) == (
            3,
            b"crewlet: no node n7 answers; see `crewlet node ls`\n",
        )
    run = shell.run("trace", "on", "dev", "--on", "n7")
    assert run.returncode == 3 and b"no node n7 answers" in run.stderr


@pytest.mark.parametrize("way", [("events", "--follow", "--last", "1"), ("trace", "on", "dev")])
def test_what_is_followed_by_way_of_on_ends_with_the_node_as_without(
    way: tuple[str, ...], operated: Running, shell: Shell
):
    assert shell.run("seat", "hold", "dev").returncode == 0
    with subprocess.Popen(
        [*COMMAND, *way, "--on", "n1", "-o", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell.environment(),
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline()
        operated.run(operated.node.stop())
        _, said = follower.communicate(timeout=20)
    assert (follower.returncode, said) == (0, b"")


# -- help ---------------------------------------------------------------------------------


def verbs() -> list[str]:
    return [name for name, _ in commands(console)]


def test_the_shell_has_the_commands_that_ask_a_node_and_no_others():
    asking = {
        name
        for name, command in commands(app)
        if any("--on" in parameter.opts for parameter in command.params)
    }
    assert asking == {*verbs(), "shell"}
    assert not set(LEAVE) & set(console.commands)


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]):
    assert run_line(f"help {verb}") == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: crewlet " + verb)
    assert re.search(rf"^ +crewlet {verb}( |$)", text, re.MULTILINE), text
    assert text.isascii()


@pytest.mark.parametrize("noun", list(console.commands))
def test_help_has_verbs_in_the_order_of_the_table_and_the_same_options(
    noun: str, capsys: pytest.CaptureFixture[str]
):
    command = console.commands[noun]
    run_line(f"help {noun}")
    by_help = capsys.readouterr().out
    if isinstance(command, click.Group):
        _, _, listed = by_help.partition("Commands:\n")
        assert re.findall(r"^  (\S+)", listed, re.MULTILINE)[: len(command.commands)] == list(
            command.commands
        )
    run_line(f"{noun} --help")
    assert capsys.readouterr().out == by_help


def test_a_look_at_the_top_is_a_table(here: Running, capsys: pytest.CaptureFixture[str]):
    run_line("seat hold dev")
    run_line("send dev hello")
    capsys.readouterr()
    assert run_line("top --once") == 0
    node, seats, _, header, row = capsys.readouterr().out.splitlines()
    assert node.startswith("n1  cpu") and seats == "2 seats, 2 of them here, 1 busy"
    assert header.startswith("HANDLE  OWNER  STATE") and row.startswith("dev     n1     resting")


def test_a_type_that_no_event_has_is_no_silence(here: Running, capsys: pytest.CaptureFixture[str]):
    for line, said in (("events --type agent_turn_complete", "no such event"), ("events", "")):
        capsys.readouterr()
        assert run_line(line) == 0
        assert said in capsys.readouterr().err
    assert run_line("events --type nope -o json") == 0
    assert capsys.readouterr() == ("[]\n", "")


def test_help_lists_every_verb_once(capsys: pytest.CaptureFixture[str]):
    assert run_line("help") == 0
    listed = re.findall(r"^  (\S+(?: \S+)?)  ", capsys.readouterr().out, re.MULTILINE)
    assert [name for name in listed if name not in ("help [VERB]", "exit")] == verbs()


def examples() -> list[str]:
    found = []
    for _, command in commands(console):
        lines = (command.epilog or "").splitlines()
        found += [line.strip() for line in lines if line.startswith("  crewlet ")]
    return found


@pytest.mark.parametrize("example", examples())
def test_the_examples_of_the_help_are_command_lines(example: str):
    words = shlex.split(re.split(r" {2,}| \| ", example)[0])[1:]
    words = [word for word in words if word != "ID"]
    command: click.Command = console
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context("x", words)


# -- every verb ---------------------------------------------------------------------------

LINES = {
    "send": "send dev hello",
    "seat show": "seat show dev",
    "seat hold": "seat hold dev",
    "seat release": "seat release dev",
    "seat quiesce": "seat quiesce dev",
    "seat unquiesce": "seat unquiesce dev",
    "seat detach": "seat detach dev",
    "seat attach": "seat attach dev",
    "seat pause": "seat pause dev",
    "seat resume": "seat resume dev",
    "seat move": "seat move dev n1",
    "seat delete": "seat delete dev --yes dev",
    "run show": "run show dev r1",
    "run complete": "run complete dev r1 done",
    "run fail": "run fail dev r1",
    "run ask": "run ask dev r1 'Which branch?'",
    "run take": "run take dev r1",
    "node label": "node label zone=west",
    "apply": f"apply {FILE}",
    "revision diff": "revision diff 1 1",
    "why": "why dev",
    "tell": "tell dev describe",
    "top": "top --once",
    "trace off": "trace off dev",
    "inbox peek": "inbox peek dev",
    "channel show": "channel show a2a-0123456789ab",
    "ask": "ask dev hello --turn turn-0",
    "dlq show": "dlq show 17",
    "dlq replay": "dlq replay 17",
    "dlq drop": "dlq drop 17 --yes",
}
"""Of a verb that is more than its name."""

ENDLESS = {"trace on": "trace on dev"}
OF_A_RUN = {"run show", "run complete", "run fail", "run ask", "run take"}
REFUSED = {"dlq show", "dlq replay", "dlq drop", "channel show", "ask", *OF_A_RUN}


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb not in ENDLESS])
def test_the_json_of_every_verb_decodes(
    verb: str, here: Running, capsysbinary: pytest.CaptureFixture[bytes]
):
    line = LINES.get(verb, verb)
    code = run_line(f"{line} -o json")
    assert code == (3 if verb in REFUSED else 0)
    printed = capsysbinary.readouterr()
    if verb not in REFUSED:
        assert json.loads(printed.out) is not None
        assert printed.err == b""
    if verb == "drain":
        return
    run_line(f"{line} -o jsonl")
    for row in capsysbinary.readouterr().out.splitlines():
        assert isinstance(json.loads(row), dict)
    run_line(line)
    assert b"\x1b" not in capsysbinary.readouterr().out


@pytest.mark.parametrize("verb", verbs())
def test_without_a_node_every_verb_says_so_and_what_to_do(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("CREWLET_DATA", str(tmp_path))
    assert run_line(f"{LINES.get(verb, ENDLESS.get(verb, verb))} -o json") == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"start one with `crewlet up --data {tmp_path}`" in printed.err


BAD = ["a b c d e f", "--nope", "-o xml", "--on '*' x"]


@pytest.mark.parametrize("verb", verbs())
def test_bad_arguments_end_with_a_code_and_a_sentence(
    verb: str, here: Running, capsys: pytest.CaptureFixture[str]
):
    """Never a traceback, and nothing is done by them."""
    for bad in BAD:
        code = run_line(f"{verb} {bad}")
        printed = capsys.readouterr()
        assert code in (2, 3), (verb, bad, printed)
        assert printed.err or code == 3
        assert "Traceback" not in printed.err
    assert not here.node.stopping.is_set()


@pytest.mark.parametrize("line", ["seat move dev", "seat move dev ''", "node drain ''"])
def test_a_node_that_is_missing_or_empty_is_never_this_one(
    line: str, here: Running, capsys: pytest.CaptureFixture[str]
):
    """`node drain "$NODE"` without that variable drains nobody."""
    assert run_line(line) == 2
    printed = capsys.readouterr()
    assert "Usage: crewlet" in printed.err and "NODE" in printed.err
    assert not here.node.edge.draining


def test_deleting_asks_for_the_handle_again(operated: Running, shell: Shell):
    run = shell.run("seat", "delete", "dev", stdin=b"dev\n")
    assert (run.returncode, run.stdout) == (3, b"")
    assert b"add --yes dev" in run.stderr
    assert shell.run("seat", "delete", "dev", "--yes", "ops").returncode == 2
    run = shell.run("seat", "delete", "dev", "--yes", "dev", "-o", "jsonl")
    assert json.loads(run.stdout)["changed"] is True


def test_what_acted_is_recorded_with_the_user_of_the_socket(operated: Running, shell: Shell):
    shell.run("shell", "-c", "seat hold dev 'a secret reason'", "-c", "send dev 'a secret text'")
    run = shell.run("events", "--type", "operator_acted", "-o", "jsonl")
    rows = [json.loads(row) for row in run.stdout.splitlines()]
    assert [(row["verb"], row["target"]) for row in rows] == [("seat.hold", "dev"), ("send", "dev")]
    assert {row["uid"] for row in rows} == {os.getuid()}
    assert b"secret" not in run.stdout


# -- a drain that is waited for -----------------------------------------------------------


@pytest.mark.field("C11")
def test_a_drain_is_waited_for_but_not_by_its_own_turn(operated: Running, shell: Shell):
    """The command of a turn says by a variable which turn it is."""
    operated.go.clear()
    assert shell.run("send", "dev", "hello").returncode == 0
    rows: list[dict[str, str]] = []
    while not rows:
        rows = json.loads(shell.run("ps", "-o", "json").stdout)
    environment = shell.environment(CREWLET_TURN_ID=rows[0]["turn_id"])
    run = shell.run("node", "drain", "--wait", "-o", "jsonl", env=environment)
    assert (run.returncode, json.loads(run.stdout)["state"]) == (0, "draining")
    assert len(json.loads(shell.run("ps", "-o", "json").stdout)) == 1
    operated.loop.call_soon_threadsafe(operated.loop.call_later, 0.5, operated.go.set)
    assert shell.run("node", "drain", "--wait").returncode == 0
    assert json.loads(shell.run("ps", "-o", "json").stdout) == []


# -- the guide ----------------------------------------------------------------------------


def test_the_lines_of_the_guide_run(here: Running, capsys: pytest.CaptureFixture[str]):
    lines = re.findall(r"^    crewlet> (.+)$", GUIDE.read_text(), re.MULTILINE)
    assert len(lines) > 20
    for line in lines:
        assert run_line(line) == 0, (line, capsys.readouterr().err)


def test_the_guide_has_every_reason_of_why():
    import crewlet.node.verbs.reasons as module

    codes = set(re.findall(r'Reason\(\s*"(\w+)"', Path(module.__file__).read_text()))
    table = "".join(re.findall(r"^\| (`.*?) \|", GUIDE.read_text(), re.MULTILINE))
    assert codes == set(re.findall(r"`(\w+)`", table))
