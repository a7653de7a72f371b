"""Shares: exact, agreed on without a word, and at rest once they are right."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import SmallFleet

from actors.machines.placement import (
    WORKERS,
    Board,
    Demand,
    GiveUp,
    Member,
    Place,
    fair_shares,
    may_work,
)

EAST = (("zone", "east"),)
SSD = (("disk", "ssd"), ("zone", "east"))
NODES = ("a", "b", "c", "d", "e")
DEMANDS = st.sampled_from(
    [Demand()] * 4
    + [Demand(labels=EAST), Demand(labels=SSD), Demand("b"), Demand("c", EAST), Demand("none")]
)
LABELS = st.sampled_from([{}, {"zone": "east"}, {"zone": "east", "disk": "ssd"}, {"zone": "west"}])
MEMBERS = st.lists(st.tuples(st.sampled_from(NODES), LABELS, st.sampled_from([True] * 3 + [False])))
HANDLES = st.lists(DEMANDS, max_size=24)

thorough = settings(derandomize=True, max_examples=300, deadline=None)


@st.composite
def boards(draw: st.DrawFn) -> list[Board]:
    """The same board for each member, any state of the rows."""
    members = sorted(
        {id: Member(id, labels, open) for id, labels, open in draw(MEMBERS)}.values(),
        key=lambda member: member.id,
    )
    who = st.sampled_from(["", *NODES, "gone"])
    places = [
        Place(f"s{i}", demand, draw(who), draw(who), draw(st.booleans()), draw(st.booleans()))
        for i, demand in enumerate(draw(HANDLES))
    ]
    return [Board(member.id, members, places) for member in members]


@thorough
@given(boards())
def test_what_all_decide_on_one_board_fits_together(same: list[Board]) -> None:
    taken: dict[str, str] = {}
    for board in same:
        moves = fair_shares(board)
        places = {place.handle: place for place in board.places}
        me = next(member for member in board.members if member.id == board.me)
        assert len(set(moves.take)) == len(moves.take)
        for handle in moves.take:
            assert not places[handle].holder and may_work(me, places[handle].demand)
            assert handle not in taken, f"{taken[handle]} and {board.me} take {handle}"
            taken[handle] = board.me
        for give_up in moves.give_up:
            place = places[give_up.handle]
            assert place.holder == board.me
            if not me.open:
                assert give_up.reason == "role"
            elif not may_work(me, place.demand):
                assert give_up.reason == "placement"
            else:
                assert give_up.reason == "balance" and give_up.to != board.me
                to = next(member for member in board.members if member.id == give_up.to)
                assert may_work(to, place.demand)
    for board in same:
        free = {place.handle for place in board.places if not place.holder}
        nobody = {
            place.handle
            for place in board.places
            if not any(may_work(member, place.demand) for member in board.members)
        }
        assert set(fair_shares(board).unplaceable) == nobody
        assert set(taken) == free - nobody, "a free seat waits though somebody could"


@thorough
@given(boards())
def test_nobody_takes_above_its_share_but_by_order(same: list[Board]) -> None:
    for board in same:
        moves = fair_shares(board)
        groups: dict[Demand, list[Place]] = {}
        for place in board.places:
            groups.setdefault(place.demand, []).append(place)
        for demand, places in groups.items():
            able = [member.id for member in board.members if may_work(member, demand)]
            if board.me not in able:
                continue
            held = sum(place.holder == board.me for place in places)
            ordered = sum(
                place.ordered and not place.waits and place.preferred == board.me
                for place in places
                if not place.holder
            )
            new = sum(place.handle in moves.take for place in places)
            assert new <= max(0, -(-len(places) // len(able)) - held) + ordered


@thorough
@given(boards(), st.randoms(use_true_random=False))
def test_the_order_in_which_seats_are_listed_is_no_matter(same: list[Board], dice) -> None:  # type: ignore[no-untyped-def]
    for board in same[:2]:
        shuffled = list(board.places)
        dice.shuffle(shuffled)
        assert fair_shares(Board(board.me, board.members, shuffled)) == fair_shares(board)


CHANGES = st.sampled_from(["join", "die", "close", "open", "label"])


def at_rest(fleet: SmallFleet) -> None:
    """Every seat has a home that fits, and counts are even: by group, and as far as groups
    overlap in all."""
    for demand, places in fleet.groups().items():
        able, held = fleet.able(demand), fleet.held(demand)
        assert set(held) <= set(able)
        assert sum(held.values()) == (len(places) if able else 0)
        if able:
            counts = [held[id] for id in able]
            assert max(counts) - min(counts) <= 1
    totals = fleet.held()
    for one, other in permutations(fleet.members, 2):
        if totals[one] >= totals[other] + 2:
            for demand in fleet.groups():
                if {one, other} <= set(fleet.able(demand)):
                    held = fleet.held(demand)
                    assert held[one] <= held[other], (demand, one, other)


@pytest.mark.certifies(272)
@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    HANDLES,
    st.dictionaries(st.sampled_from(NODES), LABELS, min_size=1),
    st.lists(st.tuples(CHANGES, st.sampled_from(NODES), LABELS), max_size=5),
)
def test_each_change_moves_a_seat_once_at_most_and_then_all_is_at_rest(
    demands: list[Demand],
    labels: dict[str, dict[str, str]],
    changes: list[tuple[str, str, dict[str, str]]],
) -> None:
    fleet = SmallFleet({f"s{i:02}": demand for i, demand in enumerate(demands)})
    fleet.members = {id: Member(id, offers) for id, offers in labels.items()}
    fleet.settle()
    at_rest(fleet)
    for change, id, offers in changes:
        fleet.moved.clear()
        if id not in fleet.members:
            fleet.members[id] = Member(id, offers)
        elif change == "die":
            fleet.die(id)
        elif change == "label":
            fleet.members[id] = Member(id, offers, fleet.members[id].open)
        else:
            fleet.members[id] = Member(id, fleet.members[id].labels, change != "close")
        fleet.settle()
        assert not fleet.moved or max(fleet.moved.values()) == 1, (change, id, fleet.moved)
        at_rest(fleet)
        assert fleet.round() == 0, "it flaps"  # the board is the same for ever, and so is this


def fleet_of(seats: int, *nodes: str, groups: int = 1) -> SmallFleet:
    demands = [Demand(labels=((f"g{i % groups}", "1"),)) for i in range(seats)]
    fleet = SmallFleet({f"s{i:02}": demand for i, demand in enumerate(demands)})
    offers = {f"g{i}": "1" for i in range(groups)}
    fleet.members = {id: Member(id, offers) for id in nodes}
    fleet.settle()
    return fleet


def test_many_small_groups_are_even_in_all_also_for_who_comes_later() -> None:
    fleet = fleet_of(10, "a", groups=10)
    assert fleet.held() == {"a": 10}
    fleet.members["b"] = Member("b", fleet.members["a"].labels)
    fleet.moved.clear()
    fleet.settle()
    assert fleet.held() == {"a": 5, "b": 5} and set(fleet.moved.values()) == {1}


@pytest.mark.parametrize("duties", range(1, 8))
def test_a_duty_makes_room_before_a_seat_does(duties: int) -> None:
    """For a node that comes where one has a seat and everything else: nobody waits for a duty."""
    names = [f"worker:{number}" for number in range(duties)]
    places = [Place(name, Demand(role=WORKERS), holder="a") for name in names]
    places.append(Place("dev", Demand(), holder="a"))
    moves = fair_shares(Board("a", [Member("a"), Member("b")], places))
    assert [one.reason for one in moves.give_up] == ["balance"] * ((duties + 1) // 2)
    assert "dev" not in [one.handle for one in moves.give_up]


@pytest.mark.parametrize("handle", [f"s{i:02}" for i in range(12)])
def test_an_ordered_move_sticks_and_others_make_room(handle: str) -> None:
    fleet = fleet_of(12, "a")
    for id in "bc":  # most seats have been given to somebody by now
        fleet.members[id] = Member(id, fleet.members["a"].labels)
        fleet.settle()
    to = "b" if fleet.rows[handle].holder != "b" else "c"
    fleet.move(handle, to)
    fleet.settle()
    assert fleet.rows[handle].holder == to
    at_rest(fleet)


def test_orders_are_obeyed_and_kept_where_they_break_the_shares() -> None:
    fleet = fleet_of(4, "a", "b")
    for handle in fleet.rows:
        if fleet.rows[handle].holder == "a":
            fleet.move(handle, "b")
    assert fleet.round() == 2 and fleet.held() == {"b": 4}
    fleet.settle()
    assert fleet.held() == {"a": 2, "b": 2}  # the two that were there before made room
    moved = [handle for handle, row in fleet.rows.items() if row.holder == "a"]
    for handle in moved:
        fleet.move(handle, "b")
    fleet.settle()
    assert fleet.held() == {"b": 4}


def test_a_seat_that_waits_is_no_longer_kept_for_the_node_that_it_was_meant_for() -> None:
    members = [Member("a"), Member("b")]
    held = [Place("s1", holder="a"), Place("s2", holder="b"), Place("s3", holder="a")]
    for waits, taker in ((False, "a"), (True, "b")):
        free = Place("s0", preferred="a", ordered=True, waits=waits)
        for me in "ab":
            take = fair_shares(Board(me, members, [free, *held])).take
            assert take == (("s0",) if me == taker else ())


def test_what_the_company_has_no_more_is_given_up_first() -> None:
    board = Board("a", [Member("a", open=False)], [Place("s0", holder="a")], ["s9", "s8"])
    assert fair_shares(board).give_up == (
        GiveUp("s8", "gone"),
        GiveUp("s9", "gone"),
        GiveUp("s0", "role"),
    )


def test_the_seats_of_a_silent_node_are_left_to_it_and_counted() -> None:
    """Its session is not ended yet: the others neither take them nor take more than their part."""
    members = [Member("a"), Member("b")]
    places = [Place(f"s{i}", holder="silent" if i < 2 else "") for i in range(4)]
    assert [fair_shares(Board(me, members, places)).take for me in "ab"] == [("s2",), ("s3",)]


def test_a_node_that_leaves_names_an_heir_for_each_seat_as_they_lack_them_in_turns() -> None:
    members = [Member("a", open=False), Member("b"), Member("c"), Member("d", open=False)]
    held = [Place(f"s{n}", holder="a") for n in range(4)]
    held += [Place("s4", holder="d"), Place("s5", holder="b"), Place("s6", holder="d")]
    by_a = [move.to for move in fair_shares(Board("a", members, held)).give_up]
    by_d = [move.to for move in fair_shares(Board("d", members, held)).give_up]
    assert by_a == ["b", "c", "b", "c"] and by_d == ["b", "c"]


def test_whoever_could_not_work_a_seat_is_not_its_heir_and_nobody_is_where_nobody_may() -> None:
    members = [Member("a", open=False), Member("b")]
    bad = Place("s0", holder="a", avoid="b")
    alone = Place("s1", Demand("a"), holder="a")
    moves = fair_shares(Board("a", members, [bad, alone])).give_up
    assert sorted((move.handle, move.to) for move in moves) == [("s0", ""), ("s1", "")]
