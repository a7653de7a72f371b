"""Which company a node begins with, and when it tries a revision: decisions without a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crewlet.company import Company, parse_company
from crewlet.errors import NodeRefused
from crewlet.revisions.revision import Revision, decoded, encoded, revision_of
from crewlet.revisions.standing import TRIES, Standing
from crewlet.revisions.start import at_start

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def company(goal: str = "one", name: str = "T") -> Company:
    return parse_company(f"name: {name}\nroles:\n  - {{name: Dev, goal: {goal}}}\n")


def revision(number: int = 3, goal: str = "one", name: str = "T") -> Revision:
    made = revision_of(company(goal, name), after=None, by="ann", at=NOW)
    return Revision(**{**{n: getattr(made, n) for n in made.__struct_fields__}, "number": number})


def test_a_revision_is_read_as_it_was_written_and_what_is_none_is_not():
    assert decoded(encoded(revision())) == revision()
    assert revision_of(company("two"), after=revision(), by="ann", at=NOW).number == 4
    for bad in (b"", b"{}", b"[" * 10_000, b'{"number": "x"}'):
        assert decoded(bad) is None


def test_a_revision_keeps_the_references_and_not_what_they_stand_for():
    text = "name: T\nintegrations: {github: {secret: '${S}'}}\nroles:\n  - name: Dev\n"
    made = parse_company(text, env={"S": "do not tell"})
    stored = encoded(revision_of(made, after=None, by="ann", at=NOW))
    assert b"${S}" in stored and b"do not tell" not in stored


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("forced", [True, False])
def test_the_first_file_becomes_the_first_revision(alone: bool, forced: bool):
    assert at_start(company(), None, (), alone=alone, forced=forced) == "apply"
    unwritten = Company(name="T")
    assert at_start(unwritten, None, (), alone=alone, forced=forced) == "file"
    assert at_start(unwritten, revision(), (), alone=alone, forced=forced) == "active"
    assert at_start(company(), revision(), (), alone=alone, forced=forced) == "file"


@pytest.mark.parametrize(
    ("known", "alone", "forced", "wanted"),
    [
        (True, True, False, "active"),
        (True, False, False, "active"),
        (False, False, False, "active"),  # a host that was forgotten decides for nobody
        (False, True, False, "apply"),  # a file that was edited, where nobody else could
        (True, True, True, "apply"),
        (False, False, True, "apply"),
    ],
)
def test_the_store_wins_over_a_file_that_is_older_or_somebodys(
    known: bool, alone: bool, forced: bool, wanted: str
):
    past = [revision(2, "older").digest] if known else []
    own = company("older")
    assert at_start(own, revision(), past, alone=alone, forced=forced) == wanted


@pytest.mark.parametrize("forced", [True, False])
def test_another_company_is_refused_with_the_way_out(forced: bool):
    with pytest.raises(NodeRefused, match="--data DIR"):
        at_start(company(name="Other"), revision(), (), alone=True, forced=forced)


def test_a_revision_is_tried_three_times_and_then_it_is_stuck():
    at = Standing().taken(revision(1))
    assert at.state == "applied" and not at.tries_now(revision(1))
    states = []
    for _ in range(TRIES):
        assert at.tries_now(revision(2, "two"))
        at = at.refused(revision(2, "two"), "no such program")
        states.append(at.state)
    assert states == ["behind", "behind", "stuck"]
    assert (at.number, at.wanted, at.reason) == (1, 2, "no such program")
    assert not at.tries_now(revision(2, "two"))
    assert at.tries_now(revision(3, "three")), "a later one is another matter"
    assert at.afresh().tries_now(revision(2, "two")), "somebody asked for it again"
    assert at.refused(revision(3, "three"), "x").tries == 1
    assert at.taken(revision(3, "three")) == Standing().taken(revision(3, "three"))


def test_a_store_that_was_set_up_anew_is_followed():
    at = Standing().taken(revision(7))
    assert at.tries_now(revision(1, "other"))
    assert at.tries_now(revision(7, "other")), "the same number is not the same text"
