"""A strategy of somebody else's: it shares the seats, and the rules of the house hold over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from actors.machines.placement import (
    Board,
    Demand,
    GiveUp,
    Member,
    Moves,
    Place,
    decide,
    fair_shares,
    may_work,
)
from crewlet.testing.strategies import boards

BOARD = Board(
    "a",
    (Member("a"), Member("b")),
    (
        Place("mine", holder="a"),
        Place("theirs", holder="b"),
        Place("free"),
        Place("pinned", Demand("b")),
        Place("held", Demand("b"), holder="a"),
    ),
    gone=("left",),
)


def always(moves: Any) -> Callable[[Board], Any]:
    return lambda board: moves


@pytest.mark.certifies(282)
@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(boards())
def test_nothing_is_taken_from_the_strategy_of_the_house(board: Board) -> None:
    assert decide(fair_shares, board) == fair_shares(board)


@pytest.mark.certifies(282)
def test_what_somebody_holds_or_this_node_may_not_work_is_not_taken() -> None:
    greedy = Moves(take=("mine", "theirs", "free", "pinned", "unknown"), unplaceable=("pinned",))
    assert decide(always(greedy), BOARD) == Moves(take=("free",), unplaceable=("pinned",))


@pytest.mark.certifies(282)
@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(boards())
def test_whatever_wants_all_gets_what_is_free_and_fits(board: Board) -> None:
    all_of_them = Moves(take=tuple(place.handle for place in board.places))
    me = next(member for member in board.members if member.id == board.me)
    free = [place for place in board.places if not place.holder and may_work(me, place.demand)]
    assert decide(always(all_of_them), board).take == tuple(place.handle for place in free)


def test_what_is_given_up_without_need_is_balance_and_nothing_else_is() -> None:
    """Whatever it is called: a node that drains does not wait for a brake."""
    said = (
        GiveUp("mine", "placement", "b"),
        GiveUp("held", "balance", "b"),
        GiveUp("left", "gone"),
        GiveUp("mine", "balance", "a"),
    )
    kept = (GiveUp("mine", "balance", "b"), GiveUp("held", "placement", "b"), said[2])
    assert decide(always(Moves(give_up=said)), BOARD).give_up == kept


def test_what_is_given_up_for_a_node_that_is_not_there_is_anybodys() -> None:
    """A row that names something else than a node would be read by nobody."""
    said: tuple[Any, ...] = (GiveUp("mine", "balance", "gone"), GiveUp("held", "placement", 7))  # type: ignore[arg-type]
    kept = (GiveUp("mine", "balance"), GiveUp("held", "placement"))
    assert decide(always(Moves(give_up=said)), BOARD).give_up == kept


@pytest.mark.parametrize(
    "moves",
    [
        Moves(take=None),  # type: ignore[arg-type]
        Moves(give_up=None),  # type: ignore[arg-type]
        Moves(unplaceable=None),  # type: ignore[arg-type]
        Moves(take=([],)),  # type: ignore[arg-type]
        Moves(give_up=("mine",)),  # type: ignore[arg-type]
    ],
)
def test_what_belongs_in_no_moves_is_refused(moves: Moves) -> None:
    with pytest.raises((TypeError, AttributeError)):
        decide(always(moves), BOARD)


@pytest.mark.parametrize("answer", [None, [], ("free",)])
def test_an_answer_that_is_no_moves_is_refused_by_name(answer: object) -> None:
    with pytest.raises(TypeError, match=f"not {type(answer).__name__}"):
        decide(always(answer), BOARD)


def test_a_strategy_that_would_wait_is_refused() -> None:
    async def strategy(board: Board) -> Moves:
        return Moves()

    answer = strategy(BOARD)
    with pytest.raises(TypeError, match="not coroutine"):
        decide(always(answer), BOARD)
    asyncio.run(answer)
