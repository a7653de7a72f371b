"""Which answers are late: those that nobody hands on, a few times, and no others."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from crewlet.a2a.late import Late
from crewlet.a2a.upkeep import LATE_S, LATE_TRIES
from crewlet.coordination.store import Entry
from tests.a2a.test_channel import OPEN

pytestmark = pytest.mark.certifies(214, 219)


def entry(state: str, *, gone: bool = False) -> Entry:
    channel = replace(OPEN, state=state)  # type: ignore[arg-type]
    return Entry(OPEN.id, msgspec.json.encode(channel), 1, gone)


def test_an_answer_is_late_after_twenty_seconds_and_not_for_ever() -> None:
    late = Late()
    late.heard(entry("answered"), 0.0)
    late.heard(entry("answered"), 15.0)
    assert late.due(LATE_S - 0.1) == []
    looked = [at for at in range(400) if late.due(float(at))]
    assert looked == [round(LATE_S) * n for n in range(1, LATE_TRIES + 1)]


@pytest.mark.parametrize(
    "then", [entry("closed"), entry("answered", gone=True), Entry(OPEN.id, b"of a later build", 2)]
)
def test_what_was_handed_on_is_not_late(then: Entry) -> None:
    late = Late()
    late.heard(entry("open"), 0.0)
    late.heard(entry("answered"), 1.0)
    late.heard(then, 2.0)
    assert late.due(100.0) == []
