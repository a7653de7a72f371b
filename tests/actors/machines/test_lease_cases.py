"""A node's own session, case by case: what each answer makes of it, and when."""

from __future__ import annotations

import pytest
from lease_store import TIMING
from msgspec.structs import replace

from actors.machines import lease as machine
from actors.machines.lease import Effect, State
from actors.tenure import Lease

OTHER = Lease(resource="node:n", owner="n:other", node="n", epoch=4, session=4, revision=9)


def the(kind: type, effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


class Node:
    """A machine and the last write that it asked for."""

    def __init__(self, *, seal: str = "") -> None:
        self.machine = machine.SessionMachine("n", "n:me", TIMING, seal=seal)
        self.write: Lease | None = None

    def step(self, given: machine.Input, now: float) -> list[Effect]:
        effects = self.machine.step(given, now)
        for effect in effects:
            if isinstance(effect, machine.Write):
                self.write = effect.lease
        return effects

    def applied(self, now: float, *, sent: float) -> list[Effect]:
        assert self.write is not None
        row = replace(self.write, revision=self.write.revision + 1)
        return self.step(machine.Written(row, sent), now)


def held(now: float = 0.0) -> Node:
    node = Node()
    node.step(machine.Begin({}), now)
    node.step(machine.Looked(None), now)
    node.applied(now, sent=now)
    assert node.machine.state is State.HELD
    return node


def test_another_is_left_alone_until_its_row_was_the_same_for_a_whole_ttl() -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    node.step(machine.Looked(OTHER), 1)
    assert the(machine.Look, node.step(machine.Woken(), 1.5))
    assert not the(machine.Write, node.step(machine.Looked(OTHER), 20.9))
    node.step(machine.Woken(), 21.5)
    [write] = the(machine.Write, node.step(machine.Looked(OTHER), 21.6))
    assert (write.lease.epoch, write.lease.revision) == (5, 9)


def test_a_row_that_is_renewed_is_of_a_process_that_lives() -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    assert not the(machine.Taken, node.step(machine.Looked(OTHER), 1))
    node.step(machine.Woken(), 2)
    renewed = replace(OTHER, revision=10)
    assert the(machine.Taken, node.step(machine.Looked(renewed), 2)) == [machine.Taken(renewed)]


@pytest.mark.parametrize("row", [replace(OTHER, released=True), replace(OTHER, owner="n:me")])
def test_what_was_given_up_or_is_our_own_is_taken_at_once_with_another_epoch(row: Lease) -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    [write] = the(machine.Write, node.step(machine.Looked(row), 1))
    assert (write.lease.epoch, write.lease.session, write.lease.owner) == (5, 5, "n:me")


def test_a_seal_proves_the_death_and_an_empty_one_nothing() -> None:
    for seal, takes in (("lock", True), ("", False)):
        node = Node(seal=seal)
        node.step(machine.Begin({}), 0)
        effects = node.step(machine.Looked(replace(OTHER, about={"seal": seal})), 0)
        assert bool(the(machine.Write, effects)) == takes


def test_an_answer_that_comes_after_its_validity_is_no_session() -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    node.step(machine.Looked(None), 0)
    effects = node.applied(17, sent=0)
    assert node.machine.state is State.OUT and the(machine.Look, effects)
    assert not the(machine.Began, effects) and not the(machine.Ended, effects)


def test_a_renewal_counts_from_its_sending_and_a_late_one_leaves_the_doubt() -> None:
    node = held()
    node.step(machine.Woken(), 5)
    assert the(machine.Doubted, node.step(machine.Woken(), 6))
    assert not the(machine.Renewed, node.applied(12, sent=5))
    assert (node.machine.valid_until, node.machine.start_until) == (22, 11)
    assert node.machine.doubted and node.write is not None
    assert the(machine.Renewed, node.applied(13, sent=12)) == [machine.Renewed(12, again=True)]


def test_a_write_that_ran_into_our_own_is_repeated_and_extends_nothing() -> None:
    node = held()
    node.step(machine.Woken(), 5)
    node.step(machine.Unanswered(), 8)
    node.step(machine.Woken(), 8.5)
    assert the(machine.Look, node.step(machine.Refused(), 9))
    row = Lease(resource="node:n", owner="n:me", node="n", epoch=1, session=1, revision=7)
    [write] = the(machine.Write, node.step(machine.Looked(row), 9))
    assert write.lease.revision == 7 and node.machine.valid_until == 17


@pytest.mark.parametrize("by", [{"released": True}, {"owner": "n:other", "epoch": 2}, None])
def test_a_session_that_somebody_ended_is_over_at_once(by: dict[str, object] | None) -> None:
    node = held()
    assert node.write is not None
    row = None if by is None else replace(node.write, revision=5, **by)
    node.step(machine.Woken(), 5)
    node.step(machine.Refused(), 5)
    effects = node.step(machine.Looked(row), 5.1)
    assert the(machine.Ended, effects) == [machine.Ended(machine.LOST)]
    assert node.machine.valid_until == float("-inf")


def test_what_is_said_while_the_session_is_being_taken_is_written_at_once() -> None:
    node = Node()
    node.step(machine.Begin({"roles": "seats"}), 0)
    node.step(machine.Looked(None), 0)
    node.step(machine.About({"roles": "seats", "leaving": "1"}), 0.1)
    [write] = the(machine.Write, node.applied(0.2, sent=0))
    assert write.lease.about["leaving"] == "1"


def test_whoever_was_not_told_to_begin_has_no_session() -> None:
    for given in (machine.About({}), machine.Woken()):
        assert Node().step(given, 0) == [machine.Wake(float("inf"))]
    assert the(machine.Left, Node().step(machine.Leave(), 0))


def test_leaving_ends_the_validity_when_it_is_sent() -> None:
    node = held()
    [write] = the(machine.Write, node.step(machine.Leave(), 3))
    assert write.lease.released and node.machine.valid_until == float("-inf")
    assert the(machine.Left, node.applied(3.1, sent=3))
    assert node.step(machine.Woken(), 4) == []


def test_leaving_waits_for_a_renewal_that_is_under_way_and_no_longer() -> None:
    node = held()
    node.step(machine.Woken(), 5)
    assert not the(machine.Write, node.step(machine.Leave(), 5.1))
    [write] = the(machine.Write, node.applied(5.2, sent=5))
    assert write.lease.released


def test_a_release_that_nobody_answers_is_tried_as_long_as_the_session_would_have_lasted() -> None:
    node = held()
    node.step(machine.Leave(), 1)
    now = 1.0
    while node.machine.state is State.LEAVING:
        effects = node.step(machine.Unanswered(), now)
        [wake] = the(machine.Wake, effects)
        now = max(now, wake.at)
        effects = node.step(machine.Woken(), now)
    assert 16 < now <= 17 and the(machine.Left, effects)


def test_a_release_under_way_does_not_outlast_the_session() -> None:
    node = held()
    [wake] = the(machine.Wake, node.step(machine.Leave(), 1))
    assert wake.at == 17 and the(machine.Left, node.step(machine.Woken(), 17))
    assert node.applied(18, sent=1) == []


@pytest.mark.parametrize(
    "answer",
    [machine.Looked(None), machine.Looked(OTHER), machine.Unanswered()],
    ids=lambda answer: type(answer).__name__,
)
def test_whoever_leaves_while_it_looks_takes_nothing(answer: machine.Input) -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    assert not the(machine.Left, node.step(machine.Leave(), 0))
    assert node.step(answer, 0.1) == [machine.Left()]


def test_whoever_leaves_while_it_takes_gives_back_what_it_took_and_says_nothing_of_it() -> None:
    node = Node()
    node.step(machine.Begin({}), 0)
    node.step(machine.Looked(None), 0)
    node.step(machine.Leave(), 0)
    effects = node.applied(0.1, sent=0)
    assert not the(machine.Began, effects)
    [write] = the(machine.Write, effects)
    assert write.lease.released


def test_whoever_is_refused_while_it_leaves_does_not_begin_anew() -> None:
    node = held()
    node.step(machine.Woken(), 5)
    node.step(machine.Leave(), 5.1)
    assert the(machine.Ended, node.step(machine.Woken(), 17))
    assert node.step(machine.Refused(), 18) == [machine.Left()]
