"""Each place where a checker says that a promise is broken has a history that it alone is said of:
none can be taken out, or never be reached, without a test that fails."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from actors.simulation.checkers import FAMILIES, Checker, Fail, Rules, all_checkers
from tests.simulation import histories, test_checkers, test_excuses, test_liveness

Site = tuple[str, int]
"""The file of a checker, and the line on which its sentence begins."""


def written() -> Iterator[Site]:
    for family in FAMILIES:
        file = inspect.getfile(family)
        for node in ast.walk(ast.parse(Path(file).read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.fail":
                yield Path(file).name, node.lineno


class Said:
    """By history, which places said something, and of which promise."""

    def __init__(self) -> None:
        self.of: list[dict[str, set[Site]]] = []

    def checkers(self, rules: Rules, fail: Fail) -> Sequence[Checker]:
        mine: dict[str, set[Site]] = {}
        self.of.append(mine)

        def heard(invariant: str, text: str) -> None:
            frame = sys._getframe(1)
            site = Path(frame.f_code.co_filename).name, frame.f_lineno
            mine.setdefault(invariant, set()).add(site)
            fail(invariant, text)

        return all_checkers(rules, heard)

    def alone(self) -> set[Site]:
        """Without these, a history breaks one promise less."""
        every = [sites for mine in self.of for sites in mine.values()]
        return {next(iter(sites)) for sites in every if len(sites) == 1}


def play_all() -> None:
    """Every history of the tests that have some."""
    for name in test_checkers.BAD:
        test_checkers.test_a_bad_history_breaks_the_promise_it_is_about(name)
    for lines, audit, broken in test_checkers.AUDITS:
        test_checkers.test_the_audit(lines, audit, broken)
    for name, test in vars(test_liveness).items():
        if name.startswith("test_"):
            test()
    for lines in (test_excuses.FORGOTTEN, test_excuses.LOST):
        test_excuses.test_an_excuse_runs_out(lines)


def test_each_sentence_of_a_checker_is_said_of_a_history_by_it_alone(
    monkeypatch: pytest.MonkeyPatch,
):
    said = Said()
    monkeypatch.setattr(histories, "all_checkers", said.checkers)
    play_all()
    assert set(written()) - said.alone() == set()
