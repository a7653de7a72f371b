"""The catalogue is whole and fresh, the judgement is strict, and some faults are run each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.certified import contract
from tests.mutants import __main__ as command
from tests.mutants import baseline
from tests.mutants.campaign import ROOT, Campaign, judged
from tests.mutants.catalogue import MUTANTS, TIERS
from tests.mutants.mutant import VARIABLE, Mutant, Patches, Stale
from tests.mutants.report import Report, Test

PROMISED = """
    free-defer head-replay-after-nak headroom-folded-by-max linger-slides detach-drops-the-pull
    hold-keyed-by-topic-only budget-off-by-one unconfirmed-nak dead-letter-without-term
    partition-stands-by-arrival ack-before-completion ledger-is-not-asked defer-omitted
    defer-by-republish rest-handed-back-in-reverse failure-returns-at-the-head backoff-is-flat
    cancelled-fetch-is-not-unsubscribed max-deliver-is-the-budget dead-letter-after-term
    publish-before-ensure one-failure-naks-the-drain newest-conversation-first
    hold-ignored-while-collecting handler-exceptions-escape
"""

EACH_TIME = (
    "free-defer",
    "budget-off-by-one",
    "headroom-folded-by-max",
    "hold-keyed-by-topic-only",
    "ledger-is-not-asked",
    "newest-conversation-first",
)


# -- the catalogue --------------------------------------------------------------------


def test_every_fault_that_was_promised_is_there() -> None:
    assert set(PROMISED.split()) <= set(MUTANTS)
    assert len(MUTANTS) == sum(len(tier.TIER.mutants) for tier in TIERS), "a name is used twice"


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_fault_says_what_it_imitates_breaks_and_finds_what_it_replaces(mutant: Mutant) -> None:
    assert mutant.cases and mutant.lines and mutant.imitates.endswith(".")
    assert set(mutant.lines) <= set(contract.read())
    patches = mutant.apply()
    assert patches.number
    patches.undo()


def test_the_baseline_knows_every_fault_as_it_is() -> None:
    assert baseline.differences(MUTANTS.values()) == []


def test_a_change_of_the_catalogue_shows_in_the_baseline(tmp_path: Path) -> None:
    one, two = list(MUTANTS.values())[:2]
    path = tmp_path / "baseline.txt"
    path.write_text(baseline.text_of([one, two]).replace(two.cases[0], "another"))
    assert baseline.differences([two], path) == [
        f"{one.name} is in baseline.txt only",
        f"{two.name} differs from baseline.txt",
    ]
    assert baseline.differences([one], tmp_path / "none") == [f"{one.name} is not in none"]


def test_every_case_that_a_fault_names_exists() -> None:
    cases = sorted({case for mutant in MUTANTS.values() for case in mutant.cases})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *cases]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]


# -- planting -------------------------------------------------------------------------


class Thing:
    number = 3

    def method(self, one: int, *, other: int) -> int:
        return one + other

    async def later(self) -> None:
        pass


def test_what_is_planted_is_taken_out_again() -> None:
    patches = Patches()
    patches.set(Thing, "method", lambda thing, one, *, other: 0)
    assert Thing().method(1, other=2) == 0
    patches.undo()
    assert Thing().method(1, other=2) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gone", 1),
        ("number", 3),
        ("number", "three"),
        ("method", lambda thing, one: 0),
        ("method", lambda thing, one, *, another: 0),
        ("__eq__", lambda thing, one: True),
    ],
    ids=["gone", "the same", "another type", "fewer arguments", "other names", "inherited"],
)
def test_what_does_not_fit_any_more_is_stale(name: str, value: object) -> None:
    patches = Patches()
    with pytest.raises(Stale):
        patches.set(Thing, name, value)
    assert patches.number == 0
    with pytest.raises(Stale):
        patches.item({}, name, value)


def test_a_fault_that_replaces_nothing_is_stale_and_half_of_one_is_undone() -> None:
    with pytest.raises(Stale, match="replaces nothing"):
        Mutant("empty", "t", (), (), "", lambda patch: None).apply()

    def half(patch: Patches) -> None:
        patch.set(Thing, "number", 4)
        patch.set(Thing, "gone", 4)

    with pytest.raises(Stale, match=r"Thing\.gone does not exist"):
        Mutant("half", "t", (), (), "", half).apply()
    assert Thing.number == 3


def test_a_fault_that_falls_over_by_itself_is_noted_and_what_the_product_raises_is_not() -> None:
    patches = Patches()
    patches.set(Thing, "method", lambda thing, one, *, other: thing.missing)
    with pytest.raises(AttributeError):
        Thing().method(1, other=2)
    assert "AttributeError" in patches.broken[0]
    patches.undo()
    patches = Patches()
    patches.set(Thing, "method", lambda thing, one, *, other: Path("/nowhere").read_text())
    with pytest.raises(FileNotFoundError):
        Thing().method(1, other=2)
    assert not patches.broken
    patches.undo()


# -- judging --------------------------------------------------------------------------

ONE = Mutant("m", "t", (), ("a.py::t", "b.py::u"), "", lambda patch: None)
FAILED = [
    Test("a.py::t[1]", "call", "failed", "AssertionError: x"),
    Test("b.py::u", "call", "failed", "E: y"),
]
PASSED = Test("b.py::u", "call", "passed")


@pytest.mark.parametrize(
    ("report", "word"),
    [
        (Report(FAILED), "caught"),
        (Report([FAILED[0], PASSED]), "elsewhere"),
        (Report([Test("a.py::t", "call", "passed"), PASSED]), "survived"),
        (Report([Test("a.py::t", "setup", "failed", "no server"), FAILED[1]]), "elsewhere"),
        (Report([]), "elsewhere"),
        (Report(FAILED, broken=["oops"]), "broken"),
        (Report([], stale="gone"), "stale"),
        (Report([FAILED[0], Test("b.py::u", "call", "failed", "Failed: Timeout >60s")]), "hung"),
        (Report([FAILED[0], Test("b.py::u", "call", "failed", "RuntimeWarning: x")]), "elsewhere"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_only_a_named_case_that_fails_in_its_own_call_has_caught_it(
    report: Report, word: str
) -> None:
    assert judged(ONE, report).word == word


def test_a_case_that_fails_without_the_fault_has_caught_nothing() -> None:
    campaign = Campaign(1)
    campaign._run_clean = lambda cases: Report(FAILED)  # type: ignore[method-assign]
    assert campaign.judge(ONE).result().word == "unclean"
    campaign.end()


def test_a_name_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["no-such-fault"]) == 2
    assert "no-such-fault" in capsys.readouterr().err
    assert command.main(["--list", "free-defer"]) == 0
    assert "free-defer (twin; contract 12, 40)" in capsys.readouterr().out


# -- running --------------------------------------------------------------------------


def _shell(*command: str, mutant: str) -> SimpleNamespace:
    run = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, VARIABLE: mutant},
        capture_output=True,
        text=True,
        check=False,
    )
    return SimpleNamespace(code=run.returncode, said=run.stdout + run.stderr)


def test_a_node_refuses_to_start_with_a_fault() -> None:
    run = _shell("crewlet", "up", mutant="free-defer")
    assert run.code == 3 and "CREWLET_MUTANT is set" in run.said


def test_a_run_with_a_fault_that_nobody_knows_does_not_begin() -> None:
    run = _shell("pytest", "-p", "tests.mutants.plugin", "tests/test_topics.py", mutant="nobody")
    assert run.code == 4 and "no such fault" in run.said


@pytest.mark.parametrize("name", EACH_TIME)
def test_its_case_catches_it(name: str) -> None:
    campaign = Campaign(1)
    verdict = campaign.judge(MUTANTS[name]).result()
    campaign.end()
    assert verdict.caught, f"{verdict.word}: {verdict.why}"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_case_catches_its_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0, capsys.readouterr().out
