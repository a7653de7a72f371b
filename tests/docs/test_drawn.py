"""Pages that are drawn from the code are what the code is."""

from __future__ import annotations

from types import ModuleType

import pytest

from actors.machines import handoff, lease
from tests.docs import draw_consumer, draw_handoff, draw_session
from tests.docs.draw_consumer import walk


@pytest.mark.parametrize(
    "draw", [draw_consumer, draw_handoff, draw_session], ids=lambda each: each.PAGE.stem
)
def test_each_page_is_drawn_from_its_machine(draw: ModuleType) -> None:
    assert draw.PAGE.read_text(encoding="utf-8") == draw.page(), f"run: python -m {draw.__name__}"


def test_the_walks_come_into_every_state() -> None:
    for found, states in (
        (draw_handoff.walk(), handoff.State),
        (draw_session.walk(), lease.State),
    ):
        assert {state for state, _, _ in found} == {state.value for state in states}


def test_a_handoff_that_is_fenced_only_ends() -> None:
    for (state, name, after), kinds in draw_handoff.walk().items():
        if state == "fencing":
            assert set(kinds) <= {"-", "gone(lost)"} and after in ("fencing", "free"), name


def test_a_session_that_was_given_up_is_taken_no_more() -> None:
    for (state, name, after), kinds in draw_session.walk().items():
        if state in ("leaving", "left"):
            assert after in ("leaving", "left"), name
            assert not any(word in ("write", "began") for kind in kinds for word in kind.split())


def test_a_brake_never_starts_anything() -> None:
    brakes = ("quiesce", "hold", "pause", "drain", "detach", "cut")
    for (state, name, _), kinds in walk().items():
        if name in brakes:
            assert not any("run" in kind.split() or "pull" in kind.split() for kind in kinds), (
                state,
                name,
            )
