"""What lies in examples/ and docs/field-reports.md agrees with the product and the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crewlet.cli import exits
from crewlet.company import NodeSettings, load_node_settings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SPINE = {f"C{n:02}" for n in (4, 5, 10, 13, 17, 23, 28, 29, 31, 35, 37, 38, 40, 44, 47)}


def _unit() -> dict[str, str]:
    lines = (EXAMPLES / "crewlet.service").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key: value for key, _, value in pairs}


@pytest.mark.field("C17")
def test_the_unit_stops_the_node_first_and_waits_out_the_drain() -> None:
    unit = _unit()
    assert unit["KillMode"] == "mixed" and unit["KillSignal"] == "SIGTERM"
    assert int(unit["TimeoutStopSec"]) >= NodeSettings().drain_timeout_s + 10
    assert unit["RestartPreventExitStatus"].split() == [str(exits.USAGE), str(exits.REFUSED)]
    assert unit["StateDirectoryMode"] == "0700" and unit["NoNewPrivileges"] == "yes"
    words = unit["ExecStart"].split()
    assert words[1] == "up" and f"/var/lib/{unit['StateDirectory']}" in words
    # Unix sockets for the operator's commands, the others for the web edge and the broker.
    assert set(unit["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}


@pytest.mark.field("C44")
def test_the_image_has_an_init_in_front_and_a_time_to_stop() -> None:
    folder = EXAMPLES / "docker"
    image = (folder / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["tini", "--", "crewlet"]' in image and "STOPSIGNAL SIGTERM" in image
    bound_s = load_node_settings(folder / "node.yaml", env={}).drain_timeout_s
    said = re.findall(r"--stop-timeout (\d+)", (folder / "README.md").read_text())
    assert said and all(int(stop_s) >= bound_s + 10 for stop_s in said)


def test_the_simulation_example_finds_what_it_says() -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "simulate.py")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found, kept, unseen = run.stdout.splitlines()
    assert "one comment each at " in found and "the same comment twice" in found
    assert kept.endswith("each comment once") and unseen.startswith("not met")


def test_the_embedding_example_runs() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "dev", str(EXAMPLES / "embed.py")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "dev: Developer read: hello from my own program" in run.stdout
    assert "Warning" not in run.stderr


def test_every_example_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        if path.name not in ("README.md", "__pycache__"):
            assert f"]({path.name}" in text, path.name


def test_every_case_is_answered_and_every_test_named_is_there() -> None:
    text = (ROOT / "docs" / "field-reports.md").read_text()
    rows = {row.split("|")[1].strip(): row for row in text.splitlines() if row.startswith("| C")}
    assert set(rows) >= SPINE
    for case, row in rows.items():
        named = re.findall(r"`(tests/\S+?\.py)(?:::(\w+))?`", row)
        assert named, f"{case} names no test"
        marked = False
        for file, name in named:
            source = (ROOT / file).read_text()
            assert not name or f"def {name}(" in source, f"{case}: {file} has no {name}"
            marked |= f'field("{case}")' in source
        assert marked, f"{case}: no file that is named has a test marked with it"
