"""`@pytest.mark.certifies(43, 44)`: refuses numbers that the contract does not know, and with
`--certified=FILE` writes which tests of which number passed, failed or were skipped.

Under pytest-xdist the workers send the numbers along with their reports, and the process
that the person started writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from tests.certified import contract

KEY = "certifies"
OUTCOMES = ("passed", "failed", "skipped")


class Certified:
    """Collects the outcome of every test that certifies a line."""

    def __init__(self, known: Iterable[int], path: Path | None) -> None:
        self._known = frozenset(known)
        self._path = path
        self._outcome: dict[str, str] = {}
        self._numbers: dict[str, list[int]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A wrong number is an error of the file it stands in, here and on a worker."""
        report = yield
        items = [node for node in report.result or () if isinstance(node, pytest.Item)]
        wrong = [f"{item.nodeid}: {text}" for item in items for text in self._wrong(item)]
        if wrong:
            report.outcome = "failed"
            report.longrepr = "\n".join(wrong)
            report.result = []
        return report

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if found := sorted({number for number in numbers(item) if isinstance(number, int)}):
                item.user_properties.append((KEY, found))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = dict(report.user_properties).get(KEY)
        if not isinstance(found, list):
            return
        self._numbers[report.nodeid] = found
        worst = self._outcome.get(report.nodeid, "")
        if report.failed or worst == "failed":
            self._outcome[report.nodeid] = "failed"
        elif report.skipped or worst == "skipped":
            self._outcome[report.nodeid] = "skipped"
        elif report.when == "call":
            self._outcome[report.nodeid] = "passed"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._path is not None and not hasattr(session.config, "workerinput"):
            self._path.write_text(json.dumps(self.result(), indent=1, sort_keys=True) + "\n")

    def result(self) -> dict[str, dict[str, list[str]]]:
        """`{"passed": {"43": [test ids]}, "failed": ..., "skipped": ...}`."""
        result: dict[str, dict[str, list[str]]] = {outcome: {} for outcome in OUTCOMES}
        for test, found in sorted(self._numbers.items()):
            for number in found:
                tests = result[self._outcome.get(test, "skipped")]
                tests.setdefault(str(number), []).append(test)
        return result

    def _wrong(self, item: pytest.Item) -> Iterable[str]:
        for number in numbers(item):
            if number not in self._known:
                yield f"certifies({number!r}): docs/contract.md has no such line"


def numbers(item: pytest.Item) -> list[object]:
    """What the marks of a test, its class and its file name."""
    return [number for mark in item.iter_markers(KEY) for number in mark.args]


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--certified",
        metavar="FILE",
        help="write which lines of docs/contract.md the tests of this run show",
    )


def configure(config: pytest.Config) -> None:
    path = config.getoption("--certified")
    config.pluginmanager.register(Certified(contract.read(), Path(path) if path else None))
