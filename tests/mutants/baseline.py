"""tests/mutants/baseline.txt: every fault, what it breaks, what is expected, and its cases.

The file changes only in a commit that says why: a fault that is dropped or renamed, or a case
that is exchanged for another, shows in its diff.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.mutants.mutant import Mutant

BASELINE: Final = Path(__file__).parent / "baseline.txt"

_HEAD: Final = """\
# The planted faults: name, tier, broken lines of docs/contract.md, expected, and below each what
# was measured of it, in brackets, and the cases that must fail. Written by
# `python -m tests.mutants --write`, compared by every run.
"""


def text_of(mutants: Iterable[Mutant]) -> str:
    """The file for these faults, all of them caught."""
    parts = [_HEAD]
    for mutant in mutants:
        lines = ",".join(map(str, mutant.lines))
        parts.append(f"{mutant.name}  {mutant.tier}  {lines}  caught\n")
        parts += [f"    ({mutant.note})\n"] if mutant.note else []
        parts += [f"    {case}\n" for case in mutant.cases]
    return "".join(parts)


def entries(text: str) -> dict[str, str]:
    """Name to everything that the file says of it."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            name = line.split()[0]
        found[name] = f"{found.get(name, '')}{line}\n"
    return found


def differences(mutants: Iterable[Mutant], path: Path = BASELINE) -> list[str]:
    """A sentence for each fault that the file does not know as it is."""
    written = entries(path.read_text()) if path.exists() else {}
    planted = entries(text_of(mutants))
    return [
        *(f"{name} is not in {path.name}" for name in planted if name not in written),
        *(f"{name} is in {path.name} only" for name in written if name not in planted),
        *(
            f"{name} differs from {path.name}"
            for name in planted
            if name in written and written[name] != planted[name]
        ),
    ]
