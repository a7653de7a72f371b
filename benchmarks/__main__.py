"""`python -m benchmarks NAME [--json] [--quick]`: run one benchmark and print its rows."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

from benchmarks.report import Report, machine
from crewlet import logs

NAMES = ("pull", "idle", "boot", "completion", "fleet")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes")
    args = parser.parse_args()
    logs.configure()  # to standard error: what is printed here is the report
    module = importlib.import_module(f"benchmarks.{args.name}")
    report: Report = module.run(quick=args.quick)
    if args.json:
        print(json.dumps(report.as_object()))
    else:
        print(f"{report.name} on {machine()}")
        print(report.as_table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
