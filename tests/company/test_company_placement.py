"""Where roles may be worked: their own word, else the innermost unit's, always as a whole."""

from __future__ import annotations

import pytest

from actors.machines.placement import Demand
from crewlet.company import Company, Placement, check_text, parse_company

TREE = """\
name: Octo
roles:
  - {name: Boss, kind: human}
  - {name: Anywhere}
  - {name: Pinned, placement: {node: node-1}}
units:
  - name: Data
    placement: {labels: {zone: east, disk: ssd}}
    roles:
      - {name: Analyst}
      - {name: Archivist, placement: {node: node-2, labels: {tape: '1'}}}
      - {name: Guest, placement: {}}
      - {name: Later, placement: }
      - {name: Chief, kind: human}
    units:
      - name: Inner
        roles: [name: Clerk]
        units:
          - name: Apart
            placement: {node: node-3}
            roles: [name: Hermit]
"""


@pytest.fixture
def company() -> Company:
    return parse_company(TREE, env={})


@pytest.mark.parametrize(
    ("handle", "placement", "demand"),
    [
        ("anywhere", None, Demand()),
        ("pinned", Placement(node="node-1"), Demand("node-1")),
        (
            "analyst",
            Placement(labels={"zone": "east", "disk": "ssd"}),
            Demand("", (("disk", "ssd"), ("zone", "east"))),
        ),
        (
            "archivist",
            Placement(node="node-2", labels={"tape": "1"}),
            Demand("node-2", (("tape", "1"),)),
        ),
        ("guest", Placement(), Demand()),
        (
            "later",
            Placement(labels={"zone": "east", "disk": "ssd"}),
            Demand("", (("disk", "ssd"), ("zone", "east"))),
        ),
        (
            "clerk",
            Placement(labels={"zone": "east", "disk": "ssd"}),
            Demand("", (("disk", "ssd"), ("zone", "east"))),
        ),
        ("hermit", Placement(node="node-3"), Demand("node-3")),
        ("boss", None, Demand()),
        ("chief", None, Demand()),
    ],
)
def test_the_innermost_word_counts_and_as_a_whole(
    company: Company, handle: str, placement: Placement | None, demand: Demand
) -> None:
    seat = company.seat(handle)
    assert seat is not None and (seat.placement, seat.demand) == (placement, demand)


def test_the_order_of_labels_makes_no_second_group() -> None:
    one = Placement(labels={"a": "1", "b": "2"}).demand
    assert one == Placement(labels={"b": "2", "a": "1"}).demand


def test_a_unit_without_roles_is_read_as_well() -> None:
    text = "name: O\nroles: [name: A]\nunits:\n  - {name: U, placement: {node: A.B}}\n"
    [problem] = check_text(text, env={})
    assert problem.path == "units[0].placement.node"
