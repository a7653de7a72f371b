"""docs/benchmarks.md says what the stored results say, and nothing else in its tables."""

from __future__ import annotations

import pytest

from benchmarks import page
from benchmarks.__main__ import NAMES
from benchmarks.page import Result, View, rewritten, shown, view_of, written
from benchmarks.report import Row

RESULT = Result(
    "pull",
    "abc1234",
    "2 cores, load 0.5 before",
    [
        Row("limit", "rate", "1/s", 35612.4, 1.0),
        Row("crewlet", "rate", "1/s", 23318.0, 0.6512),
        Row("crewlet", "memory", "KiB", 0.4321),
        Row("peer", "missing: not installed", "", None),
    ],
)


def test_the_page_agrees_with_the_results() -> None:
    text = page.PAGE.read_text()
    assert rewritten(text, page.stored()) == text, "run `python -m benchmarks.page`"


def test_every_result_is_on_the_page_and_every_benchmark_has_its_part() -> None:
    text = page.PAGE.read_text()
    tables = {view_of(found["options"]).name for found in page.TABLE.finditer(text)}
    assert tables == page.stored().keys() == set(NAMES)
    assert set(NAMES) == {
        line.removeprefix("## ").partition(":")[0]
        for line in text.splitlines()
        if line.startswith("## ")
    }
    for name in NAMES:
        assert f"`python -m benchmarks {name}`" in text


def test_a_table_has_the_ratio_beside_the_value_the_missing_and_the_command() -> None:
    text = written(RESULT, View("pull"))
    assert "|  | rate, 1/s | memory, KiB |\n|---|---:|---:|" in text
    assert "| limit | 35,600 (1) |  |" in text
    assert "| crewlet | 23,300 (0.651) | 0.432 |" in text
    assert "\npeer: missing: not installed\n" in text
    assert "\n`python -m benchmarks pull` (abc1234; 2 cores, load 0.5 before)\n" in text


def test_a_view_turns_a_table_and_chooses_from_it() -> None:
    across = written(RESULT, view_of("pull, subjects across, without memory"))
    assert "|  | limit | crewlet |" in across
    assert "| rate, 1/s | 35,600 (1) | 23,300 (0.651) |" in across
    assert "memory" not in across
    listed = written(RESULT, view_of("pull, as list, only memory"))
    assert "| crewlet: memory, KiB | 0.432 |" in listed and "rate" not in listed


def test_only_what_is_between_the_marks_is_rewritten() -> None:
    before = "a\n<!-- results: pull -->\nold\n<!-- end of results -->\nb <!-- no mark -->\n"
    after = rewritten(before, {"pull": RESULT})
    assert after.startswith("a\n<!-- results: pull -->\n\n|") and "old" not in after
    assert after.endswith("<!-- end of results -->\nb <!-- no mark -->\n")
    assert rewritten(after, {"pull": RESULT}) == after
    assert rewritten(before, {}) == before  # of what nothing is stored stays as it is


@pytest.mark.parametrize("options", ["pull, upside down", "pull, only"])
def test_an_option_that_there_is_not_is_an_error(options: str) -> None:
    with pytest.raises(ValueError, match="no option"):
        view_of(options)


def test_three_digits_carry_something() -> None:
    values = (0, 0.93412, 1.0, 12.345, 123.4, 35612.4, 1234567.0)
    assert [shown(value) for value in values] == [
        *("0", "0.934", "1", "12.3", "123", "35,600", "1,230,000")
    ]
