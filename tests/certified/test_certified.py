"""The plugin and the report, on a small suite of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certified import contract, report

ROOT = Path(__file__).parents[2]

SUITE = """
import pytest

@pytest.mark.certifies(43, 44)
def test_passes(): pass

@pytest.mark.certifies(44)
def test_fails(): assert False

@pytest.mark.certifies(45)
def test_skips(): pytest.skip("not here")

@pytest.mark.certifies(46)
@pytest.mark.parametrize("n", [1, 2])
def test_twice(n): pass

@pytest.fixture
def broken():
    yield
    raise RuntimeError("too late")

@pytest.mark.certifies(47)
def test_fails_at_its_end(broken): pass

def test_of_no_line(): pass
"""


def run_suite(
    folder: Path, suite: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "setup.cfg").write_text("[tool:pytest]\nmarkers = certifies(*lines): lines\n")
    (folder / "test_suite.py").write_text(suite)
    written = folder / "certified.json"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--certified={written}", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return run, written


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_file_says_which_tests_show_which_line(tmp_path: Path, options: tuple[str, ...]):
    run, written = run_suite(tmp_path, SUITE, *options)
    assert run.returncode == 1, run.stdout + run.stderr
    result = json.loads(written.read_text())
    assert result == {
        "passed": {
            "43": ["test_suite.py::test_passes"],
            "44": ["test_suite.py::test_passes"],
            "46": ["test_suite.py::test_twice[1]", "test_suite.py::test_twice[2]"],
        },
        "failed": {
            "44": ["test_suite.py::test_fails"],
            "47": ["test_suite.py::test_fails_at_its_end"],
        },
        "skipped": {"45": ["test_suite.py::test_skips"]},
    }


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_number_that_nobody_knows_is_an_error_of_its_file(
    tmp_path: Path, options: tuple[str, ...]
):
    suite = "import pytest\n\n@pytest.mark.certifies(43, 9999)\ndef test_of_nothing(): pass\n"
    run, _ = run_suite(tmp_path, suite, *options)
    assert run.returncode != 0
    assert "certifies(9999): docs/contract.md has no such line" in run.stdout


def test_the_report_tells_shown_lines_from_bare_ones():
    lines = {1: "one", 2: "two"}
    result = {"passed": {"1": ["a", "b"]}, "failed": {}, "skipped": {"2": ["c"]}}
    text, code = report.report(lines, result)
    assert code == 0
    assert text.splitlines() == [
        "1 lines have a passing test",
        "    1. one  [2 tests]",
        "",
        "1 lines have none",
        "    2. two",
    ]


def test_the_report_fails_on_an_unknown_number_and_on_a_broken_line():
    lines = {1: "one"}
    assert report.report(lines, {"passed": {"7": ["a"]}, "failed": {}, "skipped": {}})[1] == 1
    text, code = report.report(lines, {"passed": {}, "failed": {"1": ["a"]}, "skipped": {}})
    assert code == 1
    assert "1 lines have a failing test" in text


def test_the_report_says_what_to_run_where_nothing_was_written(tmp_path: Path):
    assert report.main([str(tmp_path / "missing.json")]) == 1


def test_the_contract_numbers_each_line_once_and_in_order(tmp_path: Path):
    assert {1, 43, 96, 116, 154, 275} <= set(contract.read())
    twice = tmp_path / "contract.md"
    twice.write_text("1. one\n2. two\n2. two again\n")
    with pytest.raises(ValueError, match="2 comes after 2"):
        contract.read(twice)


def test_no_list_of_the_contract_has_a_gap_that_a_renderer_would_close():
    """Markdown counts on from a list's first number, whatever the others say."""
    previous: int | None = None
    for text in contract.CONTRACT.read_text().splitlines():
        head, _, rest = text.partition(". ")
        if head.isdigit() and rest:
            assert previous is None or int(head) == previous + 1, text
            previous = int(head)
        elif text:
            previous = None
