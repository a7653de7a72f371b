"""`pytest -p tests.mutants.plugin` with CREWLET_MUTANT=NAME: the tests run with that fault.

`--mutant-report=FILE` writes what became of each test, for the campaign to judge.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.mutants.mutant import VARIABLE, Patches, Stale
from tests.mutants.report import Report, Test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutant-report", metavar="FILE", help="write what became of each test")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--mutant-report")
    watch = Watch(Path(path) if path else None)
    try:
        watch.plant(os.environ.get(VARIABLE, ""))
    except Stale as error:
        watch.report.stale = str(error)
        watch.write()
        raise pytest.UsageError(f"stale: {error}") from error
    config.pluginmanager.register(watch)


class Watch:
    """The fault of this run, and the end of each test."""

    def __init__(self, path: Path | None) -> None:
        self.report = Report()
        self._path = path
        self._patches = Patches()

    def plant(self, name: str) -> None:
        if not name:
            return
        from tests.mutants.catalogue import MUTANTS

        if name not in MUTANTS:
            raise pytest.UsageError(f"{VARIABLE}={name}: no such fault in tests/mutants/catalogue")
        self._patches = MUTANTS[name].apply()
        _see_once()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" or report.outcome != "passed":
            self.report.tests.append(Test(item.nodeid, report.when or "", *_end(report, call)))
        return report

    def pytest_sessionfinish(self) -> None:
        self.report.broken = self._patches.broken
        self._patches.undo()
        self.write()

    def write(self) -> None:
        if self._path is not None:
            self._path.write_bytes(msgspec.json.encode(self.report))


def _see_once() -> None:
    """The first drawn example that fails shows a fault: nobody needs the smallest one. Settings
    that a test makes for itself begin from these."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=(Phase.explicit, Phase.reuse, Phase.generate))
    settings.load_profile("mutants")


def _end(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> tuple[str, str]:
    """The outcome, and of a failure its kind and what it says, or the line that raised it."""
    if call.excinfo is None:
        return report.outcome, ""
    error = call.excinfo.value
    frames = traceback.extract_tb(error.__traceback__)
    line = frames[-1].line if frames else ""
    said = (str(error).splitlines() or [""])[0] or line or ""
    return report.outcome, f"{type(error).__name__}: {said}"[:200]
