"""Failpoints: refused outside test runs, exact where they are armed, and nothing where not."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors import failpoints
from tests.chaos.plan import NTH, OF_APPLIES

ROOT = Path(__file__).parents[2]
SOURCES = [path for package in ("actors", "crewlet") for path in (ROOT / package).rglob("*.py")]


ASKS = {
    "after_channel_opened",
    "after_request_published",
    "after_answer_kept",
    "after_answer_published",
    "after_channel_closed",
}
"""Reached where one seat asks another only (tests/chaos/test_asks.py)."""


RUNS = {"after_run_opened"}
"""Reached where a turn is suspended only (tests/chaos/test_kills_at_once.py)."""

FIRES = {"after_fire_claimed", "after_fire_published"}
"""Reached where something is scheduled only (tests/chaos/test_kills_at_once.py)."""

ENDS = {"after_complete_before_ack"}
"""A turn finishes or is suspended: one step of its life, in either of two files."""


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm("")


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sent: list[int] = []

    def kill(pid: int, number: int) -> None:
        assert pid == os.getpid()
        sent.append(number)

    monkeypatch.setattr(failpoints.os, "kill", kill)
    return sent


def test_the_nth_time_and_no_other(signals: list[int]) -> None:
    failpoints.arm("after_fetch:3=kill,before_turn:1=stop")
    failpoints.reached("after_fetch")
    failpoints.reached("before_attach")
    failpoints.reached("after_fetch")
    assert signals == []
    failpoints.reached("after_fetch")
    failpoints.reached("before_turn")
    assert signals == [signal.SIGKILL, signal.SIGSTOP]
    failpoints.reached("after_fetch")
    failpoints.reached("before_turn")
    assert len(signals) == 2, "each once: a process that was continued goes on"


def test_unarmed_it_is_nothing(signals: list[int]) -> None:
    for name in failpoints.NAMES:
        failpoints.reached(name)
    assert signals == []


@pytest.mark.parametrize(
    "text",
    ["x", "nowhere:1=kill", "after_fetch:0=kill", "after_fetch:=kill", "after_fetch:1=maim"],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no failpoint"):
        failpoints.arm(text)


def _places() -> list[str]:
    return [
        node.args[0].value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "reached"
        and isinstance(node.args[0], ast.Constant)
    ]


def test_each_name_is_one_place_and_chaos_runs_arm_it() -> None:
    places = Counter(_places())
    assert set(places) == set(failpoints.NAMES)
    assert {name for name, count in places.items() if count > 1} <= ENDS
    assert set(NTH) | set(OF_APPLIES) | {"after_dlq_before_term"} | ASKS | RUNS | FIRES == set(
        failpoints.NAMES
    )
    assert not set(failpoints.NOT_YET) & set(failpoints.NAMES)


def test_no_machine_has_one() -> None:
    machines = [path for path in SOURCES if "machines" in path.parts]
    assert machines and not [p for p in machines if "failpoints" in p.read_text()]


@pytest.mark.parametrize(
    ("text", "switch", "said"),
    [
        ("before_turn:1=kill", "", "failpoints are for test runs"),
        ("nowhere:1=kill", "1", "is no failpoint"),
    ],
)
def test_up_refuses_it(tmp_path: Path, text: str, switch: str, said: str) -> None:
    up = [sys.executable, "-m", "crewlet", "up", "--data", str(tmp_path / "data"), "--port", "0"]
    env = {**os.environ, failpoints.VARIABLE: text, failpoints.ALLOWED: switch}
    refused = subprocess.run(
        up, env=env, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    assert refused.returncode == 3
    assert said in refused.stderr and "Traceback" not in refused.stderr
    assert not (tmp_path / "data").exists()
