"""Every promise has a history that breaks it, and one close by that does not."""

from __future__ import annotations

import pytest

from actors.simulation.checkers import Audit, Retained, Rules
from tests.simulation.histories import (
    HELD,
    Line,
    at,
    completed,
    delivered,
    ended,
    judge,
    n1,
    n2,
    published,
    settled,
    started,
    worked,
)

GOOD: dict[str, list[Line]] = {
    "a message is worked": worked(1),
    "S1 the fence rises": [
        at(1.0, "release", **n1(seat="dev", fence=8, dc=1)),
        at(1.1, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
    ],
    "S2 its session was ended after a ttl": [
        at(21.0, "session_over", node="n1", dc=1, code="peer"),
        at(21.1, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
    ],
    "S2 an heir need not wait": [
        at(1.0, "session", node="n1", inc=2, dc=2, sent=0.9, code="heir"),
    ],
    "S3 in time": started(1, t=6.0),
    "S3 stopped between the check and the start": [
        at(9.0, "fault", **n1(code="resume")),
        *started(1, t=9.0),
    ],
    "S5 after the lift": [
        at(1.0, "hold", **n1(seat="dev", code="op")),
        at(2.0, "lift", **n1(seat="dev", code="op")),
        *started(1),
    ],
    "S8 nobody there, and told so": [at(1.0, "pub_none", seat="nobody", msg="x")],
    "S10 the ledger could not be read": [
        *published(1), *delivered(1), *started(1), *completed(1), *ended(),
        *delivered(1, t=5.0, dc=2), *started(1, t=5.5, dc=2, code="unread"),
    ],
    "S13 back in order, and first": [
        *published(1), *published(2), *published(3),
        *delivered(1), *delivered(2), *settled("defer", 1), *settled("defer", 2),
        *delivered(1, t=5.0, dc=2), *delivered(2, t=5.0, dc=2), *delivered(3, t=5.0),
    ],
    "S13 what was settled does not go back": [
        *worked(1), *published(2), *settled("defer", 1, t=5.0, dc=2), *delivered(2, t=6.0),
    ],
    "S14 a longer wait for each failure": [
        *published(1),
        *delivered(1), *started(1), *ended(code="nak"), *settled("nak", 1, sent=1.0),
        *delivered(1, t=5.2, dc=2), *started(1, t=5.3, dc=2), *ended(t=5.4, code="nak"),
        *settled("nak", 1, t=5.5, dc=2, sent=2.0),
    ],
    "S14 a failure that came when its node had waited long enough": [
        *published(1), *delivered(1), at(2.5, "fault", **n1(code="leave")), *started(1),
        *ended(t=12.5, code="nak"), *settled("defer", 1, t=12.6),
    ],
    "S15 the same one, published again": [
        *published(1), at(1.5, "pub_ack", seat="dev", msg="m1", seq=1, code="dup"),
    ],
    "S17 the oldest conversation first": [
        *published(1, key="a"), *published(2, key="b"),
        *delivered(1), *delivered(2),
        *started(1, key="a"), *ended(t=3.1), *started(2, t=3.2, key="b"),
    ],
    "S20 whatever is done to it, a mailbox keeps what it holds": [
        *published(1), *published(2), at(2.0, "detach", **n1(seat="dev", pos=2)), *worked(3),
        at(5.0, "ensure", seat="dev", code="again", pos=2),
        at(6.0, "delete", seat="dev", pos=2), at(7.0, "pub_none", seat="dev", msg="m4"),
    ],
    "S21 obeyed once the node was well, and taken": [
        at(1.0, "command", seat="dev", msg="c1"), at(40.0, "fault", **n2(code="pause", sent=5.0)),
        at(50.0, "obeyed", **n2(seat="dev", msg="c1")),
        at(51.0, "obeyed", **n1(seat="dev", msg="c1")),
    ],
    "S19 while the fetch was still ending": [
        *published(1), at(2.0, "hold", **n1(seat="dev", code="op")), *delivered(1, t=2.3),
    ],
    "S19 while the line was cut": [
        *published(1), at(1.0, "fault", node="n1", code="cut", sent=1.5),
        at(2.0, "hold", **n1(seat="dev", code="op")), *delivered(1, t=7.0),
    ],
}  # fmt: skip

BAD: dict[str, tuple[str, list[Line]]] = {
    "an older epoch": (
        "S1",
        [
            at(1.0, "release", **n1(seat="dev", fence=8, dc=1)),
            at(1.1, "grant", **n2(seat="dev", fence=9, dc=1, pos=1)),
        ],
    ),
    "an older fence": (
        "S1",
        [
            at(1.0, "release", **n1(seat="dev", fence=8, dc=1)),
            at(1.1, "grant", **n2(seat="dev", fence=6, dc=2, pos=1)),
        ],
    ),
    "an epoch of another process": (
        "S1",
        [at(1.0, "session", node="n1", inc=2, dc=1, sent=0.9, code="heir")],
    ),
    "a session of an older epoch": (
        "S1",
        [at(1.0, "session", **n1(dc=2, sent=0.9)), at(2.0, "session", **n1(dc=1, sent=1.9))],
    ),
    "released by somebody else": ("S1", [at(1.0, "release", **n2(seat="dev", fence=8, dc=1))]),
    "granted while a session stands": (
        "S2",
        [at(9.0, "grant", **n2(seat="dev", fence=9, dc=2, pos=1))],
    ),
    "ended before the ttl": ("S2", [at(12.0, "session_over", node="n1", dc=1, code="peer")]),
    "another process begins before the ttl": (
        "S2",
        [at(1.0, "session", node="n1", inc=2, dc=2, sent=0.9)],
    ),
    "an ended session renewed": (
        "S2",
        [
            at(21.0, "session_over", node="n1", dc=1, code="peer"),
            at(21.5, "session", **n1(dc=1, sent=21.4)),
        ],
    ),
    "a turn long after the last renewal": ("S3", started(1, t=7.0)),
    "a turn before the renewal, said after it": (
        "S3",
        [
            at(9.01, "session", **n1(dc=1, sent=9.0)),
            at(9.02, "turn_start", **n1(seat="dev", fence=7, key="k", pos=1, sent=9.0)),
        ],
    ),
    "a turn of what came when a stop was over": (
        "S3",
        [
            *published(1), at(9.0, "fault", **n1(code="resume")),
            *delivered(1, t=9.0), *started(1, t=9.0),
        ],
    ),
    "completed under an old fence": (
        "S4",
        [
            *published(1),
            at(21.0, "session_over", node="n1", dc=1, code="peer"),
            at(21.1, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
            *completed(1, t=22.0),
        ],
    ),
    "completed after the release": (
        "S4",
        [
            *published(1),
            at(1.0, "release", **n1(seat="dev", fence=8, dc=1)),
            *completed(1),
        ],
    ),
    "two turns at once": ("S5", [*started(1), *started(2, t=3.1)]),
    "a turn of a held seat": ("S5", [at(2.0, "hold", **n1(seat="dev", code="op")), *started(1)]),
    "completed and never published": ("S6", completed(9)),
    "handed out after it was removed": ("S7", [*worked(1), *delivered(1, t=5.0, dc=2)]),
    "removed before it was worked": ("S7", [*published(1), *delivered(1), *settled("ack", 1)]),
    "accepted without a mailbox": ("S8", [at(1.0, "pub_ack", seat="nobody", msg="x", seq=1)]),
    "refused although there is one": ("S8", [at(1.0, "pub_none", seat="dev", msg="x")]),
    "completed twice": ("S9", [*published(1), *completed(1), *completed(1, t=4.5)]),
    "worked although the ledger has it": (
        "S10",
        [*published(1), *completed(1), *delivered(1, t=4.5), *started(1, t=5.0)],
    ),
    "a count that fell": (
        "S11",
        [*published(1), *delivered(1), *delivered(1, t=5.0)],
    ),
    "handed out beyond the broker's limit": (
        "S12",
        [*published(1), *(line for n in range(1, 32) for line in delivered(1, dc=n))],
    ),
    "worked beyond its budget": (
        "S12",
        [
            *published(1), *(line for n in range(1, 27) for line in delivered(1, dc=n)),
            *started(1, dc=26),
        ],
    ),
    "back in the wrong order": (
        "S13",
        [
            *published(1), *published(2), *published(3, key="z"),
            *delivered(1), *delivered(2), *delivered(3),
            *settled("defer", 3), *settled("defer", 2), *settled("defer", 1),
        ],
    ),
    "new mail before what went back": (
        "S13",
        [*published(1), *published(2), *delivered(1), *settled("defer", 1), *delivered(2, t=5.0)],
    ),
    "a flat backoff": (
        "S14",
        [
            *published(1),
            *delivered(1), *started(1), *ended(code="nak"), *settled("nak", 1, sent=1.0),
            *delivered(1, t=5.2, dc=2), *started(1, t=5.3, dc=2), *ended(t=5.4, code="nak"),
            *settled("nak", 1, t=5.5, dc=2, sent=1.0),
        ],
    ),
    "a failure that goes back to the head": (
        "S14",
        [*published(1), *delivered(1), *started(1), *ended(code="nak"), *settled("defer", 1)],
    ),
    "a failure that goes back to the head of a node that waits for it": (
        "S14",
        [
            *published(1), *delivered(1), at(2.5, "fault", **n1(code="leave")), *started(1),
            *ended(t=12.4, code="nak"), *settled("defer", 1, t=12.5),
        ],
    ),
    "two turns of one delivery": (
        "S12",
        [*published(1), *delivered(1), *started(1), *ended(code="nak"), *started(1, t=4.1)],
    ),
    "published anew by a defer": (
        "S15",
        [*published(1), *delivered(1), at(5.0, "deliver", **n1(seat="dev", msg="m1", seq=9, dc=1))],
    ),
    "another message at its place": (
        "S15",
        [*published(1), at(2.0, "deliver", **n1(seat="dev", msg="m2", seq=1, dc=1))],
    ),
    "a failure that takes others along": (
        "S16",
        [
            *published(1), *published(2, key="z"), *delivered(1), *delivered(2),
            *started(1), *ended(code="nak"), *settled("nak", 2, sent=1.0),
        ],
    ),
    "the youngest conversation first": (
        "S17",
        [
            *published(1, key="a"), *published(2, key="b"), *delivered(1), *delivered(2),
            *started(2, key="b"),
        ],
    ),
    "letters out of order": (
        "S17",
        [
            *published(1), *published(2), *delivered(1), *delivered(2), *started(2),
            at(3.0, "turn_letter", **n1(seat="dev", msg="m1", seq=1, dc=1, sent=1.0, code="dev")),
        ],
    ),
    "two conversations in one turn": (
        "S17",
        [
            *published(1, key="a"), *published(2, key="b"), *delivered(1), *delivered(2),
            *started(1, key="a"),
            at(3.0, "turn_letter", **n1(seat="dev", msg="m2", seq=2, dc=1, sent=2.0, code="dev")),
        ],
    ),
    "more than a drain": (
        "S18",
        [at(3.0, "turn_start", **n1(seat="dev", fence=7, key="k", pos=101, sent=3.0))],
    ),
    "handed to a held seat": (
        "S19",
        [*published(1), at(2.0, "hold", **n1(seat="dev", code="op")), *delivered(1, t=3.0)],
    ),
    "a held seat is fed long after the trouble": (
        "S19",
        [
            *published(1), at(1.0, "fault", node="n1", code="cut", sent=1.5),
            at(2.0, "hold", **n1(seat="dev", code="op")), *delivered(1, t=9.0),
        ],
    ),
    "a detach that takes mail along": (
        "S20",
        [*published(1), *published(2), at(2.0, "detach", **n1(seat="dev", pos=1))],
    ),
    "a mailbox that was made anew": (
        "S20",
        [*published(1), at(2.0, "ensure", seat="dev", code="again", pos=0)],
    ),
    "a delete that leaves mail to nobody": (
        "S20",
        [*published(1), at(2.0, "delete", seat="dev", pos=0)],
    ),
    "a brake that costs a delivery": ("S20", [*published(1), *delivered(1, dc=2)]),
    "control behind the inbox": (
        "S21",
        [at(1.0, "command", seat="dev", msg="c1"), at(2.5, "obeyed", **n1(seat="dev", msg="c1"))],
    ),
    "control behind the inbox of a new holder": (
        "S21",
        [
            at(1.0, "command", seat="dev", msg="c1"),
            at(1.1, "release", **n1(seat="dev", fence=8, dc=1)),
            at(3.0, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
            at(4.5, "obeyed", **n2(seat="dev", msg="c1")),
        ],
    ),
    "another seat's mail": ("S21", [*published(1), *delivered(1), *started(1, code="ops")]),
    "a failure that begins again before others": (
        "L6",
        [
            *published(1), *published(2, key="z", stamp=9.0), *delivered(1), *delivered(2),
            *started(1), *ended(code="nak"), *settled("nak", 1, sent=1.0),
            *delivered(1, t=5.2, dc=2), *started(1, t=5.3, dc=2),
        ],
    ),
    "passed by for ever": (
        "L5",
        [
            *published(1), *delivered(1),
            *(line for n in range(8) for line in
              [*started(100 + n, t=3.0 + n / 10), *ended(t=3.05 + n / 10)]),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_breaks_nothing(name: str):
    assert judge([*HELD, *GOOD[name]]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_breaks_the_promise_it_is_about(name: str):
    invariant, lines = BAD[name]
    rules = Rules(max_batch=3) if invariant == "L5" else Rules()
    broken = judge([*HELD, *lines], rules=rules)
    assert broken and set(broken) == {invariant}


# -- at the end --------------------------------------------------------------------------


def test_at_the_end_everything_is_in_one_place():
    assert judge([*HELD, *worked(1)], audit=Audit()) == []


DIED = [*published(1), *delivered(1), *settled("dlq", 1)]


AUDITS: list[tuple[list[Line], Audit, list[str]]] = [
    ([*published(1)], Audit(), ["S6"]),
    (worked(1), Audit((Retained("dev", 1, 1),)), ["S6", "L4"]),
    ([], Audit((Retained("dev", 9, 1),)), ["S6", "L4"]),
    ([*published(1)], Audit((Retained("dev", 1, 3),)), ["L4"]),
    ([*published(1)], Audit((Retained("dev", 1, 25, stuck=True),)), ["S12"]),
    ([*published(1)], Audit((Retained("dev", 1, 25),)), ["S12", "L4"]),
    ([*published(1)], Audit((Retained("dev", 1, 3),), frozenset({"dev"})), []),
    ([*published(1), at(5.0, "delete", seat="dev", pos=1)], Audit(), []),
    ([at(1.0, "command", seat="dev", msg="c1")], Audit(), ["S21"]),
    (DIED, Audit(), []),
    (DIED, Audit(letters=frozenset({("dev", "m1")})), []),
    (DIED, Audit(letters=frozenset()), ["S6"]),
]


@pytest.mark.parametrize(("lines", "audit", "broken"), AUDITS)
def test_the_audit(lines: list[Line], audit: Audit, broken: list[str]):
    assert judge([*HELD, *lines], audit=audit) == broken
