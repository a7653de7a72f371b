"""Write the tables of docs/benchmarks.md from the stored results: `python -m benchmarks.page`.

A result is what `python -m benchmarks NAME --json` printed, kept as benchmarks/results/NAME.json.
In the page a table stands between two comments, and only what is between them is rewritten:

    <!-- results: NAME[, subjects across][, as list][, only WORD][, without WORD] -->
    <!-- end of results -->

Rows are subjects and columns are metrics, or with `subjects across` the other way round; `as list`
has a line for each value. `only` and `without` choose the metrics that have the word in them. A
test holds the page to the results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

from benchmarks.report import MISSING, Row

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results"
PAGE: Final = HERE.parent / "docs" / "benchmarks.md"

TABLE: Final = re.compile(
    r"(<!-- results: (?P<options>[^>]*?) -->\n).*?(<!-- end of results -->)", re.DOTALL
)
DIGITS: Final = 3
"""That carry something; the rest is noise."""


class Result(Struct, frozen=True):
    """One run of one benchmark, as it was printed."""

    name: str
    commit: str
    machine: str
    rows: list[Row]


class View(Struct, frozen=True):
    """What one table shows of a result."""

    name: str
    across: bool = False
    listed: bool = False
    only: str = ""
    without: str = ""

    def shows(self, row: Row) -> bool:
        return self.only in row.metric and not (self.without and self.without in row.metric)


def view_of(options: str) -> View:
    """What a marker asks for. ValueError for an option that there is not."""
    name, *rest = (option.strip() for option in options.split(","))
    asked: dict[str, Any] = {}
    for option in rest:
        word, _, about = option.partition(" ")
        if option == "subjects across":
            asked["across"] = True
        elif option == "as list":
            asked["listed"] = True
        elif word in ("only", "without") and about:
            asked[word] = about
        else:
            raise ValueError(f"no option of a table: {option!r}")
    return View(name, **asked)


def stored(folder: Path = RESULTS) -> dict[str, Result]:
    """Every result that is kept, by the benchmark's name."""
    read = (convert(json.loads(path.read_text()), Result) for path in sorted(folder.glob("*.json")))
    return {result.name: result for result in read}


def rewritten(page: str, results: Mapping[str, Result]) -> str:
    """The page with its tables as the results have them; one of which nothing is stored stays as
    it is."""

    def table(found: re.Match[str]) -> str:
        view = view_of(found["options"])
        result = results.get(view.name)
        return found[0] if result is None else f"{found[1]}{written(result, view)}{found[3]}"

    return TABLE.sub(table, page)


def written(result: Result, view: View) -> str:
    """One table, who is missing in it, and the command that makes it."""
    rows = [row for row in result.rows if row.value is not None and view.shows(row)]
    lines = _list(rows) if view.listed else _table(rows, across=view.across)
    for row in result.rows:
        if row.metric.startswith(MISSING):
            lines += ["", f"{row.subject}: {row.metric}"]
    about = f"{result.commit}; {result.machine}"
    return "\n".join(["", *lines, "", f"`python -m benchmarks {result.name}` ({about})", "", ""])


def _table(rows: Sequence[Row], *, across: bool) -> list[str]:
    cells: dict[tuple[str, str], str] = {}
    for row in rows:
        at = (row.subject, _metric(row))
        cells[at if not across else at[::-1]] = _cell(row)
    left, top = _each(at[0] for at in cells), _each(at[1] for at in cells)
    lines = [_line(["", *top]), _rule(len(top))]
    return lines + [_line([one, *(cells.get((one, other), "") for other in top)]) for one in left]


def _list(rows: Sequence[Row]) -> list[str]:
    found = [_line([f"{row.subject}: {_metric(row)}", _cell(row)]) for row in rows]
    return [_line(["", ""]), _rule(1), *found]


def _metric(row: Row) -> str:
    return f"{row.metric}, {row.unit}" if row.unit else row.metric


def _each(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return "|---|" + "---:|" * columns


def _cell(row: Row) -> str:
    """The value, and what part of the limit it is."""
    assert row.value is not None
    value = shown(row.value)
    return value if row.ratio_to_limit is None else f"{value} ({shown(row.ratio_to_limit)})"


def shown(value: float) -> str:
    """With three digits that carry something: 35600 as 35,600, 0.93412 as 0.934."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def main() -> int:
    before = PAGE.read_text()
    after = rewritten(before, stored())
    PAGE.write_text(after)
    print("the tables are as the results have them" if before == after else "tables rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
