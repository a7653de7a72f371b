"""The benchmarks run, and print what a program can read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_boot_prints_one_object() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "boot", "--quick", "--json"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    (line,) = run.stdout.splitlines()
    report = json.loads(line)
    assert list(report) == ["name", "commit", "machine", "rows"]
    assert report["name"] == "boot" and report["machine"]
    for row in report["rows"]:
        assert list(row) == ["subject", "metric", "unit", "value", "ratio_to_limit"]
        assert row["value"] > 0
    metrics = {(row["metric"], row["unit"]) for row in report["rows"]}
    assert {("boot", "s"), ("memory, node", "MiB"), ("memory, broker", "MiB")} <= metrics
