"""Much mail waits for one real seat, whose turns last no time: what asks it to stop is heard
between two of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.harness import Company, Running, until

QUICK = """
import asyncio, json, time
from pathlib import Path
FOLDER = Path(__file__).parent
async def work(turn):
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.01)
    line = {"at": time.monotonic(), "events": [event.id for event in turn.events]}
    with open(FOLDER / "worked", "a") as file:
        file.write(json.dumps(line) + "\\n")
    await asyncio.sleep(0.001)
"""

HEARD_WITHIN_S = 2.0
"""A quarter of a second is aimed at; the machine may be busy with something else."""


class Quick(Company):
    """Company T whose seats run the function above, once the folder has a file `go`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "quick.py").write_text(QUICK)
        text = self.file.read_text().splitlines()
        text = ["  python: quick:work" if "command:" in line else line for line in text]
        self.file.write_text("\n".join(text))

    def worked(self) -> list[dict[str, Any]]:
        """When each turn began, and of which events."""
        path = self.folder / "worked"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ids(self) -> Counter[str]:
        return Counter(event for row in self.worked() for event in row["events"])


def _rests(node: Running, code: str) -> bool:
    """Whether that brake is on, and no turn runs or begins."""
    codes = {reason["code"] for reason in node.call("why", handle="dev")}
    return code in codes and not codes & {"working", "starting", "slot"}


def _owed(node: Running) -> int:
    """Messages of dev that are not acknowledged."""
    row = next(row for row in node.call("seats") if row["handle"] == "dev")
    return int(row["waiting"] + row["in_flight"])


@pytest.mark.field("C47")
@pytest.mark.certifies(72)
def test_a_flood_of_mail_does_not_drown_the_stop(tmp_path: Path) -> None:
    """Hundreds of turns that last no time wait for one seat; a drain is heard between two."""
    company = Quick(tmp_path)
    node = company.start()
    try:
        sent = [node.send("dev", f"message {n}") for n in range(300)]
        (tmp_path / "go").touch()
        until(lambda: len(company.worked()) > 10, why="it flows")
        node.call("drain")
        began = time.monotonic()
        assert node.process.wait(10) == 0
        assert time.monotonic() - began < 2
    finally:
        node.end()
    assert len(company.worked()) < len(sent), "it did not wait for all of them"
    with company.running() as again:
        again.idle()
    assert company.ids() == Counter(sent), "each once, in both lives"


MANY = 2000


@pytest.mark.field("C47")
def test_a_brake_is_heard_under_a_flood_of_mail(tmp_path: Path) -> None:
    """Turns of a millisecond: each brake stops them, and its opposite has them go on."""
    company = Quick(tmp_path)
    with company.running() as node:
        sent = {node.send("dev", f"message {n}") for n in range(MANY)}
        (tmp_path / "go").touch()
        for verb, undo, args, code in BRAKES:
            before = len(company.worked())
            until(lambda before=before: len(company.worked()) > before + 10, why="it flows")
            asked = time.monotonic()
            node.call(verb, **args)
            until(lambda code=code: _rests(node, code), why=f"{verb} holds it")
            worked = company.worked()
            assert worked[-1]["at"] - asked < HEARD_WITHIN_S
            if verb != "node.drain":  # somebody else's turn is a moment in which none may start
                other = node.send("ops", "meanwhile")
                until(lambda other=other: company.ids()[other], why="another seat is served")
                assert len(company.worked()) == len(worked) + 1
            done = len(sent & company.ids().keys())
            assert done < MANY
            until(lambda done=done: _owed(node) == MANY - done, why="and all else is still there")
            assert set(company.ids().values()) == {1}, "each once"
            node.call(undo, **args)
        until(lambda: len(company.worked()) > len(worked) + 10, why="it goes on")


BRAKES: list[tuple[str, str, dict[str, Any], str]] = [
    ("seat.hold", "seat.release", {"handle": "dev", "reason": "flood"}, "held"),
    ("seat.quiesce", "seat.unquiesce", {"handle": "dev"}, "quiesced"),
    ("node.drain", "node.undrain", {}, "unplaceable"),
]
