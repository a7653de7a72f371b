"""A message that kills its process each time: tried 25 times, then a dead letter; nobody else's
mail pays for it. Real processes, restarted as a service manager would."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.harness import Company, Running, until

COMPANY = """
name: Company T
handler:
  python: boom:turn
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""

BOOM = """
import json, os, signal

async def turn(given):
    text = given.events[0].body
    line = {"kind": "start", "seat": given.seat.handle, "turn": given.turn_id, "text": text,
            "events": [e.id for e in given.events], "attempt": given.attempt}
    with open(os.environ["RECORD"], "a") as file:
        file.write(json.dumps(line) + "\\n")
    if text == "boom":
        os.kill(os.getpid(), signal.SIGKILL)
    with open(os.environ["RECORD"], "a") as file:
        file.write(json.dumps({**line, "kind": "end"}) + "\\n")
"""


class Restarted:
    """`crewlet up`, started again each time it dies."""

    def __init__(self, folder: Path) -> None:
        self.company = Company(folder, COMPANY)
        (folder / "boom.py").write_text(BOOM)
        self.restarts = 0
        self.node = self._start()

    def _start(self) -> Running:
        return self.company.start(env={"RECORD": str(self.company.record)}, wait=False)

    def alive(self) -> bool:
        """True while it serves; a dead one is started again."""
        if self.node.process.poll() is not None:
            self.restarts += 1
            self.node = self._start()
        return self.node.try_status() is not None

    def send(self, seat: str, text: str) -> None:
        """Until a node that lives takes it; what was stored is not sent twice."""

        def sent() -> bool:
            if not self.alive():
                return False
            try:
                return bool(self.node.send(seat, text))
            except Exception:
                return any(row["text"] == text for row in self.company.lines("start"))

        until(sent, 60, why=f"{seat} gets {text}")


@pytest.mark.field("C16")
@pytest.mark.certifies(43)
def test_a_poison_that_kills_its_process_dies_alone(tmp_path: Path) -> None:
    host = Restarted(tmp_path)
    try:
        host.send("dev", "boom")
        for n in range(20):
            host.send("dev", f"ordinary {n}")
            host.send("ops", f"ordinary {n}")

        def buried() -> bool:
            return host.alive() and bool(host.node.call("dlq.list", limit=10))

        until(buried, 300, why="the poison is a dead letter")
        letters = host.node.call("dlq.list", limit=10)
        assert [row["handle"] for row in letters] == ["dev"]
        assert "process" in letters[0]["reason"]
        until(lambda: host.alive() and _quiet(host.node), 60, why="everything else is worked")
        began = time.monotonic()
        until(lambda: time.monotonic() - began > 5 or not host.alive(), 10)
        assert host.node.process.poll() is None, "nothing kills it any more"
        tried = [r["attempt"] for r in host.company.lines("start") if r["text"] == "boom"]
        # A broker that is killed with its node may have forgotten the last delivery.
        assert tried == sorted(tried) and max(tried) <= 25 and len(tried) <= 30, tried
        ends = Counter((r["seat"], r["text"]) for r in host.company.lines("end"))
        assert set(ends) == {(seat, f"ordinary {n}") for seat in ("dev", "ops") for n in range(20)}
        assert host.restarts >= 20, sys.argv
    finally:
        host.node.end()


def _quiet(node: Running) -> bool:
    rows = [row for row in node.call("seats") if row["kind"] == "agent"]
    return all(row["waiting"] == row["in_flight"] == 0 for row in rows)
