"""Who wakes a seat, and when that looks like a loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crewlet.company import parse_company
from crewlet.inbound.wakers import LOOP_TURNS, WINDOW, Waker, Wakes, waker_of
from crewlet.turn import Conversation, SeatView, Turn, TurnEvent

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
COMPANY = parse_company(
    "name: T\nroles:\n  - {name: Dev, handle: dev, contact: {github_login: Octo-Dev}}\n"
    "  - {name: QA, handle: qa}"
)


def test_only_the_last_minutes_count() -> None:
    wakes = Wakes()
    assert wakes.most(AT) is None
    for minute in range(30):
        wakes.woken("qa" if minute % 3 else "ann", AT + timedelta(minutes=minute))
    now = AT + timedelta(minutes=29)
    assert wakes.most(now) == Waker("qa", 8, 11)
    assert wakes.most(now + WINDOW) == Waker("qa", 1, 1)
    assert wakes.most(now + 2 * WINDOW) is None


@pytest.mark.parametrize(
    ("turns", "total", "loops"),
    [(LOOP_TURNS, LOOP_TURNS, True), (LOOP_TURNS - 1, LOOP_TURNS - 1, False),
     (80, 100, True), (79, 100, False)],
)  # fmt: skip
def test_a_loop_is_many_turns_and_nearly_all(turns: int, total: int, loops: bool) -> None:
    assert Waker("qa", turns, total).loops is loops


@pytest.mark.parametrize(
    ("sender", "source", "who"),
    [
        ("octo-dev", "github", "dev"),
        ("someone", "github", "someone"),
        ("qa", "", "qa"),
        ("boss", "", "boss"),
        ("qa", "github", "qa"),
    ],
)
def test_the_waker_is_the_seat_behind_the_sender(sender: str, source: str, who: str) -> None:
    event = TurnEvent(
        id="e", type="t", timestamp=AT, sender=sender, metadata={"source": source} if source else {}
    )
    turn = Turn(
        turn_id="t",
        seat=SeatView(handle="dev", name="Dev"),
        company="T",
        conversation=Conversation(),
        events=(event,),
    )
    assert waker_of(turn, COMPANY) == who
