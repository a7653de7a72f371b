"""`python -m tests.mutants [NAME...]`: every planted fault must be caught by its cases.

Exit code 1 where one survives, is stale, breaks something else than its cases, or stands
otherwise in baseline.txt; 2 for a name that nobody knows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.mutants import baseline
from tests.mutants.campaign import Campaign
from tests.mutants.catalogue import MUTANTS


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.mutants", description="Run the planted faults.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of these only")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time (2)")
    parser.add_argument("--list", action="store_true", help="say what there is and run nothing")
    parser.add_argument("--write", action="store_true", help="write baseline.txt, run nothing")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in MUTANTS]:
        print(f"no such fault: {', '.join(unknown)}; --list names them", file=sys.stderr)
        return 2
    if given.list:
        return _list(given.names)
    if given.write:
        baseline.BASELINE.write_text(baseline.text_of(MUTANTS.values()))
        return 0
    return _run(given.names or list(MUTANTS), given.jobs)


def _list(names: Sequence[str]) -> int:
    for mutant in MUTANTS.values():
        if not names or mutant.name in names:
            lines = ", ".join(map(str, mutant.lines))
            print(f"{mutant.name} ({mutant.tier}; contract {lines})\n  {mutant.imitates}")
            if mutant.note:
                print(f"  {mutant.note}")
    return 0


def _run(names: Sequence[str], jobs: int) -> int:
    began = time.monotonic()
    campaign = Campaign(jobs)
    try:
        verdicts = [campaign.judge(MUTANTS[name]) for name in names]
        caught = 0
        for verdict in (future.result() for future in verdicts):
            caught += verdict.caught
            print(f"{verdict.word:<9} {verdict.mutant.name:<36} {verdict.why[:120]}", flush=True)
    finally:
        campaign.end()
    differences = baseline.differences(MUTANTS.values())
    for difference in differences:
        print(f"baseline  {difference}")
    print(f"caught {caught}/{len(names)} in {time.monotonic() - began:.0f} s")
    return 0 if caught == len(names) and not differences else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
