"""Pages that are drawn from the code are what the code is."""

from __future__ import annotations

from tests.docs.draw_consumer import PAGE, page, walk


def test_the_consumers_page_is_drawn_from_the_machine() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.docs.draw_consumer"


def test_a_brake_never_starts_anything() -> None:
    brakes = ("quiesce", "hold", "pause", "drain", "detach", "cut")
    for (state, name, _), kinds in walk().items():
        if name in brakes:
            assert not any("run" in kind.split() or "pull" in kind.split() for kind in kinds), (
                state,
                name,
            )
