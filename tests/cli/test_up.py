"""`crewlet up`: what it hands to the node, and what each failure means for the exit code."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from crewlet.cli import app, early
from crewlet.errors import ConfigError, CrewletError, NodeRefused, StoreUnavailable


class FakeMain:
    """Stands in for the node's own main function."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.end: int | CrewletError = 0

    def __call__(self, *arguments: object, apply: bool) -> int:
        self.calls.append((*arguments, apply))
        if isinstance(self.end, CrewletError):
            raise self.end
        return self.end


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeMain:
    fake = FakeMain()
    module = types.ModuleType("crewlet.node")
    module.run_foreground = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "crewlet.node", module)
    monkeypatch.setattr(early, "_asked", [])
    monkeypatch.delenv("CREWLET_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return fake


def test_without_arguments_it_is_the_demo_in_the_folder_here(main: FakeMain):
    assert app.run(["up"]) == 0
    assert main.calls == [(None, None, Path(".crewlet"), None, False, False)]


def test_everything_may_be_said(main: FakeMain, tmp_path: Path):
    for name in ("acme.yaml", "node.yaml"):
        (tmp_path / name).touch()
    line = "up acme.yaml --node node.yaml --data d --port 0 --quiet --apply"
    assert app.run(line.split()) == 0
    assert main.calls == [(Path("acme.yaml"), Path("node.yaml"), Path("d"), 0, True, True)]


def test_the_nodes_code_is_the_commands(main: FakeMain):
    main.end = 4
    assert app.run(["up"]) == 4


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("acme.yaml:3:1: seats: wrong"), 2),
        (NodeRefused("the data folder is held"), 3),
        (StoreUnavailable("no answer"), 1),
    ],
)
def test_an_error_is_its_sentence_and_a_code(
    main: FakeMain, capsys: pytest.CaptureFixture[str], error: CrewletError, code: int
):
    main.end = error
    assert app.run(["up"]) == code
    assert capsys.readouterr() == ("", f"crewlet: {error}\n")


def test_a_program_gets_one_object_and_then_silence(
    main: FakeMain, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert app.run(["up", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == str(tmp_path / ".crewlet")
    assert main.calls[0][4] is True


def test_a_stop_that_was_swallowed_starts_nothing(main: FakeMain, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(early, "_asked", [15])
    assert app.run(["up"]) == 0
    assert main.calls == []
