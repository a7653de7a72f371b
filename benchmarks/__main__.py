"""`python -m benchmarks NAME [--json] [--quick]`: run one benchmark and print its rows."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.report import Report
from crewlet import logs

QUESTIONS: Final[Mapping[str, str]] = {
    "actors": "messages, questions and births a second, and memory, beside other actor systems",
    "machine": "steps a second of the pure machines and of the envelope, alone",
    "pull": "emptying a full mailbox, beside other clients and other task queues",
    "publish": "a durable publish to its acknowledgement, beside bare nats-py",
    "turns": "from a webhook to a settled turn: saturation, and latency below it",
    "completion": "recording a finished turn once, by the holder of its seat only",
    "idle": "what seats cost that have nothing to do",
    "boot": "how long a company takes to stand, and what a seat costs",
    "handoff": "how long a seat is without a node when its own leaves or dies",
    "fleet": "what a fleet costs, and how that grows (a quarter of an hour)",
    "simulate": "hand-offs a minute, and virtual seconds a second, of a simulated fleet",
}
"""The benchmarks, and what each answers."""

NAMES: Final = tuple(QUESTIONS)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=NAMES, nargs="?", help="which one (see --list)")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes")
    parser.add_argument("--list", action="store_true", help="say what there is")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(f"{name:<12}{question}" for name, question in QUESTIONS.items()))
        return 0
    if args.name is None:
        parser.error("say which benchmark: " + ", ".join(NAMES))
    logs.configure()  # to standard error: what is printed here is the report
    module = importlib.import_module(f"benchmarks.{args.name}")
    report: Report = module.run(quick=args.quick)
    if args.json:
        print(json.dumps(report.as_object()))
    else:
        about = report.as_object()
        print(f"{report.name} at {about['commit']}, on {about['machine']}")
        print(report.as_table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
