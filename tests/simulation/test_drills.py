"""What the drills find in the calm: each has a fleet in which it is broken, and is said so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from actors.simulation.checkers import Audit, Retained
from actors.simulation.drills import Drills
from actors.simulation.faults import Plan, plan
from actors.simulation.fleet import Fleet
from actors.simulation.host import Host
from actors.simulation.run import run
from crewlet.broker.memory_server import MemoryServer
from crewlet.testing.simulated.campaign import rules_of
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import TwinSite

QUIET: Plan = plan(1).only(())
"""Nothing goes wrong in it."""

SOME_S = 3.0


def first(site: type[TwinSite] = TwinSite) -> tuple[str, str]:
    """What is broken first, and what is said of it."""
    with quiet():
        outcome = run(QUIET, site, rules=rules_of(QUIET), faults_s=SOME_S)
    broken = next(iter(outcome.violations), None)
    return ("", "") if broken is None else (broken.invariant, broken.text)


class Asleep(TwinSite):
    """No process of it ever asks for a seat."""

    async def program(self, host: Host) -> None:
        await asyncio.get_running_loop().create_future()


class Stranding(TwinSite):
    """Its broker has given up on a message."""

    def audit(self) -> Audit:
        return replace(super().audit(), retained=(Retained("s0", 9, 30, stuck=True),))


class Hoarding(TwinSite):
    """What a seat has is never done."""

    def left(self, seat: str) -> list[int]:
        return [9]


async def nothing(drills: Drills) -> None:
    """Instead of a drill."""


def test_nothing_is_said_of_a_fleet_that_is_well():
    assert first() == ("", "")


def test_a_fleet_that_never_takes_its_seats():
    invariant, text = first(Asleep)
    assert invariant == "L4" and text.startswith("nobody holds ['s0'")


def test_mail_that_is_stranded_when_all_should_be_worked():
    assert first(Stranding) == ("S12", "s0 9 is stranded after 30 deliveries")


def test_mail_that_waits_a_minute_after_the_last_fault():
    text = "s0: 1 messages wait, 9 the first, 60 s after the last fault"
    assert first(Hoarding) == ("L4", text)


@pytest.mark.parametrize(
    ("skipped", "text"),
    [((), "held by nobody in the calm"), (("_lift",), "held by nobody after the last")],
)
def test_a_seat_that_nobody_holds(
    skipped: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Fleet, "holder", lambda fleet, seat: None)
    for name in skipped:
        monkeypatch.setattr(Drills, name, nothing)
    invariant, said = first()
    assert invariant == "L4" and text in said


def test_a_delete_that_does_not_say_what_there_was(monkeypatch: pytest.MonkeyPatch):
    delete = MemoryServer.delete

    def says_yes(broker: MemoryServer, mailbox: Any) -> bool:
        delete(broker, mailbox)
        return True

    monkeypatch.setattr(MemoryServer, "delete", says_yes)
    assert first() == ("S20", "to delete a mailbox does not say whether there was one")
