"""What two companies are different in: in names, by whatever road, and never in secrets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.company import Company, parse_company
from crewlet.revisions.difference import Difference, SeatChange, difference

ENV = {"ONE": "the first secret", "TWO": "the second secret"}


def company(text: str, *changes: tuple[str, str]) -> Company:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_company(text, env=ENV)


def minimal(*handles: str) -> Company:
    rows = [f"  - {{name: {handle}, handle: {handle}}}" for handle in handles]
    return parse_company("\n".join(["name: T", "roles:", *rows]))


def found(*changes: tuple[str, str]) -> Difference:
    return difference(SMALL, company(SMALL.source_text, *changes))


SMALL = parse_company(
    """
name: Company T
mission: Ship
integrations: {github: {secret: "${ONE}"}}
notification_rate_limit: 5
units:
  - name: Platform
    lead: boss
    roles:
      - {name: Boss, handle: boss, kind: human}
      - {name: Dev, handle: dev, goal: build}
      - {name: Ops, handle: ops}
routes:
  - {event: github/issues.opened, to: dev, where: {repo: octo/*}}
""",
    env=ENV,
)


def test_the_same_text_and_another_layout_are_no_difference():
    assert not difference(SMALL, SMALL)
    assert not found(("mission: Ship", "\n\n# a comment\nmission: 'Ship'"))


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("goal: build", "goal: mend"), Difference(changed=(SeatChange("dev", ("goal",)),))),
        (("mission: Ship", "mission: Rest"), Difference(settings=("mission",))),
        (
            ("notification_rate_limit: 5", "notification_rate_limit: 7"),
            Difference(settings=("notification_rate_limit: 5 -> 7",)),
        ),
        (
            ("repo: octo/*", "repo: acme/*"),
            Difference(
                routes=(
                    "- github/issues.opened -> dev where repo=octo/*",
                    "+ github/issues.opened -> dev where repo=acme/*",
                )
            ),
        ),
        (("${ONE}", "${TWO}"), Difference(integrations=("~ github",))),
        (
            ("integrations: {github", "integrations: {slack: {secret: '${TWO}'}, github"),
            Difference(integrations=("+ slack",)),
        ),
        (
            ("handle: ops}", "handle: ops, kind: human}"),
            Difference(changed=(SeatChange("ops", ("kind",)),)),
        ),
        (("lead: boss", "lead: dev"), None),
    ],
)
def test_each_change_is_named_where_it_is(change: tuple[str, str], wanted: Difference | None):
    seen = found(change)
    if wanted is None:  # who leads a unit manages its seats: that is said of both
        assert seen.settings == ("units",) and {one.handle for one in seen.changed} >= {"dev"}
    else:
        assert seen == wanted
    assert "secret" not in repr(seen)


names = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=1, unique=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(names, names)
def test_seats_come_and_go_by_their_handles_whatever_their_order(old: list[str], new: list[str]):
    seen = difference(minimal(*old), minimal(*new))
    assert set(seen.added) == set(new) - set(old)
    assert set(seen.removed) == set(old) - set(new)
    assert not seen.changed
    back = difference(minimal(*new), minimal(*old))
    assert (set(back.added), set(back.removed)) == (set(seen.removed), set(seen.added))
    assert bool(seen) == (set(old) != set(new))
