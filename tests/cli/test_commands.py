"""Each noun: what it asks of the node, what it prints, and how it ends."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Events, FakeNode, Ids, Send, Shell


def complaint(run: object) -> str:
    return run.stderr.decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "command",
    [
        ("seats",),
        ("events",),
        ("events", "--follow"),
        ("send", "dev", "hello"),
        ("dlq", "list"),
        ("dlq", "show", "1"),
        ("dlq", "replay", "1"),
        ("dlq", "drop", "1", "--yes"),
        ("status",),
        ("drain",),
    ],
    ids=" ".join,
)
def test_without_a_node_every_command_says_so_and_what_to_do(
    shell: Shell, command: tuple[str, ...]
):
    run = shell.run(*command, "-o", "json", "--data", "some where")
    assert run.returncode == 3
    assert run.stdout == b""
    assert complaint(run) == (
        "crewlet: no crewlet node runs on some where; "
        "start one with `crewlet up --data 'some where'`, "
        "or name its folder: --data DIR, or CREWLET_DATA\n"
    )


def test_the_data_folder_comes_from_the_environment_unless_told(node: FakeNode, shell: Shell):
    environment = shell.environment(CREWLET_DATA=None)
    assert shell.run("seats", env=environment).returncode == 3
    assert (
        b".crewlet; start one with `crewlet up`, or name"
        in shell.run("seats", env=environment).stderr
    )
    assert shell.run("seats", "--data", "data", env=environment).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("nope",),
        ("seats", "-o", "xml"),
        ("send", "dev"),
        ("send", "dev", "  "),
        ("dlq", "replay"),
        ("dlq", "replay", "1", "--all"),
        ("up", "/nowhere/company.yaml"),
        ("up", "--port", "70000"),
        ("check", "/nowhere/company.yaml"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_2(node: FakeNode, shell: Shell, command: tuple[str, ...]):
    run = shell.run(*command)
    assert run.returncode == 2
    assert run.stdout == b""
    assert run.stderr


def test_send_puts_the_text_and_prints_the_event(node: FakeNode, shell: Shell):
    run = shell.run("send", "dev", "Grüße", "--sender", "ann", "-o", "json")
    assert json.loads(run.stdout) == {"event_id": "e-1", "position": 12}
    assert node.asked == [Send("dev", "Grüße", "ann")]


def test_send_reads_standard_input(node: FakeNode, shell: Shell):
    assert shell.run("send", "dev", "-", stdin="a long\ntext é".encode()).returncode == 0
    assert node.asked == [Send("dev", "a long\ntext é")]


def test_a_refusal_of_the_node_is_its_sentence_and_its_code(node: FakeNode, shell: Shell):
    run = shell.run("send", "nobody", "hello")
    assert (run.returncode, complaint(run)) == (2, "crewlet: there is no seat called nobody\n")
    run = shell.run("dlq", "show", "99")
    assert (run.returncode, complaint(run)) == (3, "crewlet: there is no dead letter 99\n")


def test_events_ask_for_what_was_said(node: FakeNode, shell: Shell):
    table = shell.run("events", "--type", "agent_*").stdout.decode().splitlines()
    shell.run("events", "--last", "5", "-o", "jsonl")
    assert node.asked == [Events(False, 20, "agent_*"), Events(False, 5, "*")]
    assert table[0].split() == ["TIME", "TYPE", "SOURCE", "ID", "SUMMARY"]
    assert table[1].split()[1] == "agent_turn_started"
    assert table[1].endswith("dev: agent turn started")


def test_one_dead_letter_is_shown_whole(node: FakeNode, shell: Shell):
    text = shell.run("dlq", "show", "2").stdout.decode()
    keys, _, event = text.partition("event\n")
    assert "deliveries  25\n" in keys
    assert json.loads(event)["big"] == 2**80
    assert json.loads(shell.run("dlq", "show", "2", "-o", "json").stdout)["event"] == json.loads(
        event
    )


def test_a_cut_listing_says_that_there_may_be_more(node: FakeNode, shell: Shell):
    run = shell.run("dlq", "list", "--limit", "2", "-o", "json")
    assert len(json.loads(run.stdout)) == 2
    assert complaint(run) == "crewlet: the first 2; --limit shows more\n"


def test_a_dry_run_replays_nothing(node: FakeNode, shell: Shell):
    run = shell.run("dlq", "replay", "--all", "--dry-run", "-o", "jsonl")
    assert run.returncode == 0
    assert node.asked == [Ids(["1", "2", "3"], dry_run=True)]
    assert node.replayed == set()
    assert len(run.stdout.splitlines()) == 3


def test_a_replay_says_by_its_code_how_much_of_it_was_done(node: FakeNode, shell: Shell):
    assert shell.run("dlq", "replay", "1", "1").returncode == 0
    assert shell.run("dlq", "replay", "1", "2").returncode == 4
    assert shell.run("dlq", "replay", "1", "2").returncode == 3
    assert node.asked == [Ids(["1"]), Ids(["1", "2"]), Ids(["1", "2"])]


def test_there_may_be_nothing_to_replay(node: FakeNode, shell: Shell):
    node.letters.clear()
    run = shell.run("dlq", "replay", "--all", "-o", "json")
    assert (run.returncode, run.stdout) == (0, b"[]\n")


def test_dropping_asks_and_without_a_terminal_it_does_not_guess(node: FakeNode, shell: Shell):
    run = shell.run("dlq", "drop", "1", stdin=b"y\n")
    assert run.returncode == 3
    assert "add --yes" in complaint(run)
    assert len(node.letters) == 3
    run = shell.run("dlq", "drop", "1", "9", "--yes", "-o", "json")
    assert run.returncode == 4
    assert [row["dropped"] for row in json.loads(run.stdout)] == [True, False]
    assert set(node.letters) == {"2", "3"}


def test_the_node_as_a_whole(node: FakeNode, shell: Shell):
    assert json.loads(shell.run("status", "-o", "json").stdout)["node"] == "n1"
    assert shell.run("drain").stdout.decode().splitlines()[-1] == "draining  no"


def test_versions(shell: Shell):
    assert shell.run("version").stdout.startswith(b"crewlet ")
    found = json.loads(shell.run("version", "-o", "json").stdout)
    assert set(found) == {"version", "python", "nats_py", "nats_server"}


@pytest.mark.parametrize("what", ["company", "node", "turn", "event"])
def test_schemas_are_json(shell: Shell, what: str):
    assert json.loads(shell.run("schema", what).stdout)
    assert len(shell.run("schema", what, "-o", "jsonl").stdout.splitlines()) == 1


def test_the_schema_of_an_event_has_its_wire_keys(shell: Shell):
    from crewlet.events.envelope import ENVELOPE_KEYS

    schema = json.loads(shell.run("schema", "event").stdout)
    assert set(schema["properties"]) == ENVELOPE_KEYS
    assert schema["required"] == ["id", "type", "timestamp"]


GOOD = """
name: Acme
handler: {command: [cat]}
units:
  - name: Studio
    type: team
    roles:
      - {name: Developer}
      - {name: Ann, kind: human}
"""


def test_a_good_file(shell: Shell):
    (shell.folder / "acme.yaml").write_text(GOOD)
    run = shell.run("check", "acme.yaml")
    assert run.stdout == b"acme.yaml is good: Acme, 2 seats (1 agent), 1 unit\n"
    assert run.returncode == 0
    assert json.loads(shell.run("check", "acme.yaml", "-o", "json").stdout) == []


def test_all_problems_of_a_file_with_their_places(shell: Shell):
    (shell.folder / "acme.yaml").write_text(GOOD + "colour: red\nroute: []\n")
    run = shell.run("check", "acme.yaml")
    assert run.returncode == 1
    lines = run.stdout.decode().splitlines()
    assert [line.split(": ")[0] for line in lines] == ["acme.yaml:10:1", "acme.yaml:11:1"]
    problems = json.loads(shell.run("check", "acme.yaml", "-o", "json").stdout)
    assert [(row["line"], row["path"]) for row in problems] == [(10, "colour"), (11, "route")]


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("up",),
        ("check",),
        ("schema",),
        ("send",),
        ("seats",),
        ("events",),
        ("dlq",),
        ("dlq", "list"),
        ("dlq", "show"),
        ("dlq", "replay"),
        ("dlq", "drop"),
        ("status",),
        ("drain",),
        ("version",),
    ],
    ids=" ".join,
)
def test_help_is_text_for_any_terminal(shell: Shell, command: tuple[str, ...]):
    run = shell.run(*command, "--help", env=shell.environment(LC_ALL="C"))
    assert run.returncode == 0
    assert run.stdout.isascii()
    assert run.stderr == b""
    if command and command != ("dlq",):
        assert b"--output" in run.stdout
