"""Every benchmark runs by one command, and prints one object of one shape."""

from __future__ import annotations

import importlib
import json

import pytest

from benchmarks import __main__ as runner
from benchmarks.report import MISSING, Report

LONG = ("actors", "boot", "idle", "fleet")
"""Half a minute each even so. What `actors` measures is seen in test_measures, and `boot` is run
as a command in tests/end_to_end."""


@pytest.fixture(autouse=True)
def logging_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.logs, "configure", lambda: None)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long if n in LONG else ()) for n in runner.NAMES],
)
def test_it_runs_and_prints_one_object(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main([name, "--quick", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])  # after what is logged
    assert list(printed) == ["name", "commit", "machine", "rows"]
    assert printed["name"] == name and " cores, " in printed["machine"]
    assert "load " in printed["machine"]
    for row in printed["rows"]:
        assert list(row) == ["subject", "metric", "unit", "value", "ratio_to_limit"]
        missing = row["metric"].startswith(MISSING)
        assert (row["value"] is None) == missing, row
        assert missing or row["value"] >= 0, row
    assert any(row["value"] for row in printed["rows"])


@pytest.mark.parametrize("as_json", [True, False])
def test_a_row_is_printed_as_it_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def run(*, quick: bool) -> Report:
        assert quick
        report = Report("machine")
        report.add("somebody", "something", "s", 1.23456, 0.5)
        report.missing("another", "not there")
        return report

    monkeypatch.setattr(importlib.import_module("benchmarks.machine"), "run", run)
    assert runner.main(["machine", "--quick", *(["--json"] if as_json else [])]) == 0
    printed = capsys.readouterr().out
    if not as_json:
        assert "machine at " in printed and "1.2346 s        0.50" in printed
        assert "another  missing: not there" in printed
        return
    values = {row["subject"]: row for row in json.loads(printed)["rows"]}
    assert values["somebody"] == {
        "subject": "somebody",
        "metric": "something",
        "unit": "s",
        "value": 1.2346,
        "ratio_to_limit": 0.5,
    }
    assert values["another"]["value"] is None


def test_the_list_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(runner.NAMES)
    for name in runner.NAMES:
        assert callable(importlib.import_module(f"benchmarks.{name}").run)


@pytest.mark.parametrize("argv", [[], ["nothing"]])
def test_what_there_is_not_is_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runner.main(argv)
    assert "actors" in capsys.readouterr().err
