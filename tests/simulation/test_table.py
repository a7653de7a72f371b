"""The tables of docs/guide/simulation.md, and the code: which checker holds which promise, and
which records there are."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.simulation import faults
from actors.simulation.checkers import FAMILIES
from actors.simulation.drills import Drills
from actors.simulation.history import KINDS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "simulation.md"
ROW = re.compile(r"\| ([SL]\d+) \| (.+) \| (`.+`) \|")
RECORD = re.compile(r"\| `(\w+)` \| (.+) \|")
NUMBER = re.compile(r"[SL]\d+")

PROMISED = [*(f"S{number}" for number in range(1, 22)), *(f"L{number}" for number in range(1, 9))]


def told() -> dict[str, set[str]]:
    """Promise to the names of those that hold it."""
    rows = [ROW.fullmatch(line) for line in GUIDE.read_text().splitlines()]
    return {row[1]: set(re.findall(r"`(\w+)`", row[3])) for row in rows if row is not None}


def numbers(of: type) -> Iterator[str]:
    """The promises that a class calls broken."""
    for node in ast.walk(ast.parse(inspect.getsource(of))):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and NUMBER.fullmatch(text):
            yield text


def held() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for holder in (*FAMILIES, Drills):
        for number in numbers(holder):
            found.setdefault(number, set()).add(holder.__name__)
    return found


def test_the_table_names_every_promise_once_and_in_order():
    assert list(told()) == PROMISED


def test_the_table_is_what_the_code_does():
    assert told() == held()


@pytest.mark.parametrize("number", PROMISED)
def test_a_history_of_its_own_breaks_each(number: str):
    """What the drills say of S12, S20 and L4 needs a fleet; the other half of those is here."""
    files = [
        Path(__file__).parent / f"test_{name}.py" for name in ("checkers", "liveness", "excuses")
    ]
    assert any(f'"{number}"' in file.read_text() for file in files)


def section(title: str) -> str:
    text = GUIDE.read_text()
    found = text[text.index(f"## {title}") :]
    return found[: found.index("\n## ")]


def test_the_guide_has_every_kind_of_fault():
    rows = [line.split("|")[1] for line in section("What goes wrong").splitlines() if "|" in line]
    assert set(re.findall(r"`(\w+)`", "".join(rows))) == set(faults.KINDS)


def test_the_guide_has_every_kind_of_record():
    rows = [RECORD.fullmatch(line) for line in section("What is written down").splitlines()]
    assert {row[1]: row[2] for row in rows if row is not None} == KINDS


def test_every_kind_of_record_is_written_somewhere():
    root = GUIDE.parents[2]
    places = (*root.glob("actors/simulation/*.py"), *root.glob("crewlet/testing/simulated/*.py"))
    code = "\n".join(place.read_text() for place in places if place.name != "history.py")
    assert [kind for kind in KINDS if f'"{kind}"' not in code] == []
