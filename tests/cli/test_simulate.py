"""`crewlet simulate`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from actors.simulation.checkers import Violation
from actors.simulation.history import KINDS
from crewlet.cli.app import run
from crewlet.inbound.ledger import Ledger

ROOT = Path(__file__).parents[2]

PLAYING_S = 4.0
"""Of processor time: by then a process has loaded its code, and played seeds of 0.1 minutes."""


@pytest.fixture
def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """M1: a row of the ledger that nothing guards."""
    recorded = Ledger.record

    async def record(self: Ledger, seat: str, ids: Any, **about: Any) -> None:
        await recorded(self, seat, ids, **{**about, "fence": None})

    monkeypatch.setattr(Ledger, "record", record)


def test_a_broken_promise_is_told_with_the_line_that_plays_it_again(
    unfenced: None, capsys: pytest.CaptureFixture[str]
):
    arguments = ["--profile", "mail", "--minutes", "0.5"]
    assert run(["simulate", "--seeds", "2..3", *arguments]) == 1
    said = capsys.readouterr().out
    assert "seed 2, commit " in said and ", profile mail: S4 at " in said and ", step " in said
    assert "  again: crewlet simulate --seed 2 --profile mail --minutes 0.5\n" in said
    assert "  it needs no fault at all\n" in said


def test_json_has_the_fewest_decisions_too(unfenced: None, capsys: pytest.CaptureFixture[str]):
    assert run(["simulate", "--seed", "2", "--minutes", "0.5", "-o", "json"]) == 1
    summary = json.loads(capsys.readouterr().out)
    (first, *_) = summary["violations"]
    assert first["invariant"] == "S4" and first["decisions"] == []
    assert summary["profile"] == "swarm" and summary["minutes"] == 0.5
    assert run(["simulate", "--seed", "2", "--minutes", "0.5", "--no-shrink", "-o", "json"]) == 1
    assert "decisions" not in json.loads(capsys.readouterr().out)["violations"][0]


def test_what_was_not_met_is_said_however_few_the_seeds(capsys: pytest.CaptureFixture[str]):
    assert run(["simulate", "--seed", "3", "--minutes", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "1 seed, " in said
    assert " of 30 rare events were met; for the others this run shows nothing\n" in said


def test_a_trace_says_what_its_fields_are(tmp_path: Path):
    trace = tmp_path / "t.jsonl"
    assert run(["simulate", "--seed", "3", "--minutes", "0.2", "--trace", str(trace)]) == 0
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert {line["kind"] for line in lines} <= set(KINDS)
    assert all({"t", "step", "kind"} <= set(line) for line in lines)
    assert [line["step"] for line in lines] == sorted(line["step"] for line in lines)
    assert any(line["kind"] == "grant" and line["seat"] and line["fence"] for line in lines)


def test_a_trace_is_of_the_first_seed_that_breaks_something(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Not of the last, of which nobody wants to know anything."""
    from crewlet.testing.simulated import campaign

    real, traced = campaign.play, []

    def play(task: campaign.Task, **named: Any) -> Any:
        if named.get("trace") is not None:
            traced.append(task.seed)
        outcome = real(task, **named)
        broken = (Violation("S1", 1.0, 1, "planted"),) if task.seed in (2, 3) else ()
        return structs.replace(outcome, violations=broken)

    monkeypatch.setattr(campaign, "play", play)
    line = ["simulate", "--seeds", "1..4", "--minutes", "0.1", "--no-shrink"]
    assert run([*line, "--trace", str(tmp_path / "t.jsonl")]) == 1
    assert traced == [2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--minutes", "nan"], "minutes"),
        (["--trace", "{here}/no/such/folder/t.jsonl"], "trace"),
        (["--trace", "{here}"], "directory"),
        (["--seeds", "1..2"], "one of them"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    given = [one.format(here=tmp_path) for one in arguments]
    assert run(["simulate", "--seed", "1", *given]) == 2
    told = capsys.readouterr()
    assert sentence in told.err and told.out == ""


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_it_with_what_was_played(jobs: str, number: signal.Signals):
    """Never with 0, since nobody knows what the rest would have shown; and nothing is left."""
    line = [sys.executable, "-m", "crewlet", "simulate", "--seeds", "1..5000", "--minutes", "0.1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*line, "--jobs", jobs, "-o", "json"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 60.0
    while _computed_s(process.pid) < PLAYING_S * int(jobs):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert 0 < json.loads(out)["seeds"] < 5000
    assert "Traceback" not in err and "stopped" in err
    until = time.monotonic() + 10.0
    while left := _of_group(process.pid):  # multiprocessing's own helper sees the end of a pipe
        assert time.monotonic() < until, left
        time.sleep(0.05)


def _of_group(group: int) -> dict[int, list[str]]:
    """The living processes of a group, with what /proc says of them behind their names."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if stat[2] == str(group) and stat[0] != "Z":
                found[int(folder.name)] = stat
    return found


def _computed_s(group: int) -> float:
    """Processor time of all of them."""
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in _of_group(group).values())
    return ticks / os.sysconf("SC_CLK_TCK")
