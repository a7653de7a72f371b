"""Runs each fault's cases without it and with it, and judges what became of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from tests.mutants.mutant import VARIABLE, Mutant
from tests.mutants.report import Report

ROOT: Final = Path(__file__).parents[2]

CASE_S: Final = 60
RUN_S: Final = 240.0

CAUGHT: Final = "caught"

# Those that a single case has no use for take longer to load than most cases to run.
_PLUGINS: Final = (
    *("-p", "tests.mutants.plugin", "-p", "no:xdist"),
    *("-p", "no:hypothesispytest", "-p", "no:anyio"),
)


class Verdict(msgspec.Struct, frozen=True):
    """`word` is "caught", or what is wrong; `why` the failure that the case saw."""

    mutant: Mutant
    word: str
    why: str = ""

    @property
    def caught(self) -> bool:
        return self.word == CAUGHT


class Campaign:
    """Judges faults, a few at a time. Cases are run clean once, however many faults name them."""

    def __init__(self, jobs: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=jobs)
        self._lock = threading.Lock()
        self._clean: dict[tuple[str, ...], Future[Report]] = {}

    def judge(self, mutant: Mutant) -> Future[Verdict]:
        return self._pool.submit(self._judge, mutant)

    def _judge(self, mutant: Mutant) -> Verdict:
        clean = self._run_clean(mutant.cases)
        if missing := [case for case in mutant.cases if not _among(case, clean.passed)]:
            return Verdict(mutant, "unclean", f"does not pass without it: {missing[0]}")
        return judged(mutant, run(mutant.cases, mutant.name))

    def _run_clean(self, cases: tuple[str, ...]) -> Report:
        with self._lock:
            mine = cases not in self._clean
            found = self._clean.setdefault(cases, Future())
        if mine:
            try:
                found.set_result(run(cases, ""))
            except BaseException as error:
                found.set_exception(error)
                raise
        return found.result()

    def end(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def judged(mutant: Mutant, report: Report) -> Verdict:
    """What the run with the fault shows, where the run without it was clean."""
    if report.stale:
        return Verdict(mutant, "stale", report.stale)
    if report.broken:
        return Verdict(mutant, "broken", f"the fault itself raised: {report.broken[0]}")
    failed = report.failed
    blind = [case for case in mutant.cases if not _among(case, set(failed))]
    if not blind:
        hung = [test for test in failed.values() if test.error.startswith("Failed: Timeout")]
        if hung:
            return Verdict(mutant, "hung", f"{hung[0].id}: a hang is no assertion")
        if astray := [test for test in failed.values() if "Warning:" in test.error.split()[0]]:
            return Verdict(mutant, "elsewhere", astray[0].error)
        return Verdict(mutant, CAUGHT, next(iter(failed.values())).error)
    others = [test for test in report.tests if test.outcome != "passed"]
    if not report.tests or others:
        return Verdict(mutant, "elsewhere", others[0].error if others else "the run broke off")
    return Verdict(mutant, "survived", blind[0])


def run(cases: tuple[str, ...], mutant: str) -> Report:
    """These tests, with this fault planted (empty: with none). A run that did not end, or did
    not get as far as a report, is an empty one."""
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if mutant:
        env[VARIABLE] = mutant
    with tempfile.TemporaryDirectory(prefix="crewlet-mutants-") as folder:
        written = Path(folder) / "report.json"
        command = [
            *(sys.executable, "-m", "pytest", "-q", *_PLUGINS),
            *("-o", "timeout_method=signal", f"--timeout={CASE_S}", "--tb=no"),
            *(f"--mutant-report={written}", f"--basetemp={folder}/tests", *cases),
        ]
        try:
            subprocess.run(
                command, cwd=ROOT, env=env, timeout=RUN_S, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            return Report()
        if not written.exists():
            return Report()
        return msgspec.json.decode(written.read_bytes(), type=Report)


def _among(case: str, tests: set[str]) -> bool:
    """A test, or all that a parametrized one stands for: one of them has to be there."""
    return any(test == case or test.startswith(f"{case}[") for test in tests)
