"""A drain in partitions: one conversation each, nothing lost, the oldest first."""

from __future__ import annotations

import pytest
from consumer_caller import letter
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.delivery import Letter
from actors.machines.batch import partitions

MAIL = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", ""]), st.one_of(st.none(), st.integers(-3, 3)))
)


def drain_of(mail: list[tuple[str, int | None]]) -> list[Letter]:
    return [letter(index, key, at=at) for index, (key, at) in enumerate(mail)]


def age(one: Letter) -> float:
    return float("inf") if one.timestamp is None else one.timestamp


@pytest.mark.certifies(78, 81, 82)
@settings(derandomize=True, max_examples=300, deadline=None)
@given(MAIL)
def test_any_drain_is_split_and_ordered_as_promised(mail: list[tuple[str, int | None]]) -> None:
    drain = drain_of(mail)
    made = partitions(drain)
    letters = [one for partition in made for one in partition.letters]
    assert sorted(one.delivery.position for one in letters) == list(range(len(drain)))
    assert len({partition.key for partition in made}) == len(made)
    for partition in made:
        assert {one.key for one in partition.letters} == {partition.key}
        order = [(age(one), one.delivery.position) for one in partition.letters]
        assert order == sorted(order)
    heads = [(age(partition.letters[0]), first_arrival(drain, partition.key)) for partition in made]
    assert heads == sorted(heads)


def first_arrival(drain: list[Letter], key: str) -> int:
    return next(one.delivery.position for one in drain if one.key == key)


@pytest.mark.certifies(81)
def test_a_hot_conversation_cannot_starve_one_that_waits() -> None:
    hot = [letter(position, "hot", at=10 + position) for position in range(20)]
    made = partitions([*hot, letter(20, "waiting", at=5)])
    assert [partition.key for partition in made] == ["waiting", "hot"]


@pytest.mark.certifies(81)
def test_without_a_timestamp_comes_last_and_ties_keep_the_order_of_arrival() -> None:
    mail: list[tuple[str, int | None]] = [("none", None), ("late", 2), ("y", 1), ("x", 1)]
    assert [partition.key for partition in partitions(drain_of(mail))] == ["y", "x", "late", "none"]


@pytest.mark.certifies(82)
def test_letters_of_a_partition_stand_by_timestamp_whatever_the_brokers_order() -> None:
    mail: list[tuple[str, int | None]] = [("a", 3), ("a", None), ("a", 1), ("a", 1)]
    (partition,) = partitions(drain_of(mail))
    assert [one.delivery.position for one in partition.letters] == [2, 3, 0, 1]


def test_an_empty_drain_has_no_partitions() -> None:
    assert partitions([]) == []
