"""`make certified`: the lines of docs/contract.md that a passing test shows, and the others.

Reads what `pytest --certified=.certified.json` wrote. Exit code 1 on a number that the
contract does not know, and on a line that one of its tests contradicts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.certified import contract

Tests = Mapping[str, Sequence[str]]


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0] if arguments else ".certified.json")
    if not path.exists():
        print(f"{path} is missing: run pytest --certified={path} first", file=sys.stderr)
        return 1
    text, code = report(contract.read(), json.loads(path.read_text()))
    print(text)
    return code


def report(lines: Mapping[int, str], result: Mapping[str, Tests]) -> tuple[str, int]:
    """The text to print and the exit code."""
    passed, failed = result["passed"], result["failed"]
    named = {int(number) for tests in result.values() for number in tests}
    unknown = sorted(named - set(lines))
    shown = [number for number in lines if str(number) in passed]
    broken = [number for number in lines if str(number) in failed]
    bare = [number for number in lines if str(number) not in passed]
    parts = [
        _part(f"{len(shown)} lines have a passing test", shown, lines, passed),
        _part(f"{len(bare)} lines have none", bare, lines, {}),
    ]
    if broken:
        parts.append(_part(f"{len(broken)} lines have a failing test", broken, lines, failed))
    if unknown:
        parts.append(f"docs/contract.md does not know: {', '.join(map(str, unknown))}")
    return "\n\n".join(parts), 1 if unknown or broken else 0


def _part(title: str, numbers: Sequence[int], lines: Mapping[int, str], tests: Tests) -> str:
    rows = [f"  {number:>3}. {lines[number]}{_count(tests, number)}" for number in numbers]
    return "\n".join([title, *rows])


def _count(tests: Tests, number: int) -> str:
    count = len(tests.get(str(number), ()))
    return f"  [{count} test{'' if count == 1 else 's'}]" if count else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
