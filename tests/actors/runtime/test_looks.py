"""Looks at mail that is in nobody's hands: put off while they could tell nothing, not given up."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import pytest

from actors.delivery import Mailbox
from actors.ports import Broker
from actors.strays import LATE_S, LOOK_S_A_SECOND, Look, Strays
from actors.system.clock import EPOCH
from actors.tenure import WATCHED_S

BOX = Mailbox("crewlet.agent.dev.inbox", "dev")


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def now(self) -> datetime:
        return EPOCH


def begun(strays: Strays, *, late: bool) -> Look:
    return strays.late_look(BOX, 1, LATE_S) if late else strays.first_look(BOX, 1)


@pytest.mark.parametrize("busy_s", [10.0, 100.0, 3600.0])
@pytest.mark.parametrize("late", [False, True], ids=["of the dead", "of one that left"])
def test_a_seat_that_is_long_at_work_is_looked_at_when_it_is_done(late: bool, busy_s: float):
    """Pauses grow with the time that a watch has lasted, and behind a turn of minutes the next look
    once came when its time was over: what a dead node's fetch had swallowed sat out its ack
    window."""
    clock = Hands()
    strays = Strays(cast("Broker", None), clock, lambda mailbox: ())
    look = begun(strays, late=late)
    clock.now_s = LATE_S if late else 0.0
    done = clock.now_s + busy_s
    while clock.now_s < done:
        look = strays.put_off(look)
        clock.now_s += strays.pause_s(look)
        assert clock.now_s < look.until, "it is given up"
    assert clock.now_s - done <= LOOK_S_A_SECOND * WATCHED_S
    seen = Look(look.ticket, look.since, look.until, frozenset({7}))
    assert clock.now_s + strays.pause_s(seen) < look.until, "no time is left for the second look"
