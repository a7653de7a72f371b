"""`python -m tests.chaos`: real processes under faults, and a table of what came of it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from crewlet import logs
from tests.chaos.disks import Disk
from tests.chaos.namespaces import Namespaces
from tests.chaos.plan import Budget
from tests.chaos.report import table
from tests.chaos.run import Outcome, Wanted, play


def main() -> int:
    args = _arguments()
    logs.configure(debug=False)
    networks = not args.loopback and Namespaces.possible()
    disks = args.full_disks > 0 and Disk.possible()
    missing = [f"{args.full_disks} full disks: none may be mounted here"] if args.full_disks else []
    wanted = Wanted(
        seed=args.seed,
        minutes=args.minutes,
        messages=args.messages,
        seats=args.seats,
        nodes=args.nodes,
        servers=args.servers,
        networks=networks,
        backlog=args.backlog,
        pace=args.pace,
        failpoints=not args.no_failpoints,
        disks=disks,
        missing=() if disks else tuple(missing),
        budget=Budget(
            kill=args.kills,
            stop=args.stops,
            cut=args.partitions,
            broker_kill=args.broker_kills,
            broker_stop=args.broker_stops,
            broker_cut=args.broker_cuts if networks else 0,
            move=args.moves,
            roll=args.rolls,
            apply=args.applies,
            full_disk=args.full_disks if disks else 0,
        ),
    )
    if args.keep is not None:
        outcome = asyncio.run(play(wanted, args.keep, _say))
    else:
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            outcome = asyncio.run(play(wanted, Path(folder), _say))
    _print(outcome, args.output)
    return 1 if outcome.wrong else 0


def _print(outcome: Outcome, form: str) -> None:
    if form == "json":
        print(msgspec.json.encode(outcome).decode())
    else:
        print(table(outcome))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10, help="the most that faults may take")
    parser.add_argument("--messages", type=int, default=1500)
    parser.add_argument("--seats", type=int, default=12)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--servers", type=int, default=1, choices=(1, 3))
    parser.add_argument("--kills", type=int, default=6, metavar="N")
    parser.add_argument("--stops", type=int, default=3, metavar="N")
    parser.add_argument("--partitions", type=int, default=3, metavar="N")
    parser.add_argument("--broker-kills", type=int, default=0, metavar="N")
    parser.add_argument("--broker-stops", type=int, default=0, metavar="N")
    parser.add_argument("--broker-cuts", type=int, default=0, metavar="N", help="namespaces only")
    parser.add_argument(
        "--full-disks", type=int, default=0, metavar="N", help="where a tmpfs may be mounted"
    )
    parser.add_argument("--applies", type=int, default=0, metavar="N", help="of a revision")
    parser.add_argument("--no-failpoints", action="store_true", help="kill at random only")
    parser.add_argument("--loopback", action="store_true", help="no network namespaces")
    parser.add_argument("--moves", type=int, default=0, metavar="N")
    parser.add_argument("--rolls", type=int, default=0, metavar="N", help="SIGTERM and start")
    parser.add_argument("--backlog", type=int, default=60, help="messages outstanding at a time")
    parser.add_argument("--pace", type=float, default=1.0, help="stretches the time between faults")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep logs and records here")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
