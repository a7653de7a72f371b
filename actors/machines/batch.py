"""From a drain to partitions: one conversation each, the oldest conversation first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from actors.delivery import Letter, Partition

_NEVER = float("inf")


def partitions(drain: Iterable[Letter]) -> Sequence[Partition]:
    """Split by key. Inside a partition letters stand by timestamp, whatever the broker's order;
    partitions stand by their oldest constituent, so that a hot conversation cannot starve a
    waiting one. Letters without a timestamp come last; ties keep the order of arrival."""
    by_key: dict[str, list[Letter]] = {}
    for letter in drain:
        by_key.setdefault(letter.key, []).append(letter)
    made = [Partition(key, _in_order(letters)) for key, letters in by_key.items()]
    return sorted(made, key=lambda partition: _age(partition.letters[0]))


def _in_order(letters: list[Letter]) -> tuple[Letter, ...]:
    return tuple(sorted(letters, key=_age) if len(letters) > 1 else letters)


def _age(letter: Letter) -> float:
    return _NEVER if letter.timestamp is None else letter.timestamp
