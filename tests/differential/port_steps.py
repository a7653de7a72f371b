"""What a script of the port is made of, and how hypothesis draws one."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

from actors.delivery import Dead, Done, HandBack, Retry, Verdict

BOXES: Final = 3
"""Two groups of one topic, and one of a topic whose namespace retains."""

TOPICS: Final = 2
CLIENTS: Final = 2
SHORT_S: Final = 0.2
LONG_S: Final = 60.0
PASS_S: Final = 0.3
"""Longer than the shortest retry with all that surrounds it, so that one step makes it due."""


class Idle(Struct, frozen=True):
    """Nothing: what a step is shrunk to."""


class Publish(Struct, frozen=True):
    topic: int
    id: int
    who: int


class Fetch(Struct, frozen=True):
    """What is there, at once."""

    box: int
    most: int
    who: int


class Park(Struct, frozen=True):
    """A fetch that waits; the script goes on beside it."""

    box: int
    most: int
    who: int


class Recall(Struct, frozen=True):
    box: int
    who: int


class Settle(Struct, frozen=True):
    """Verdicts about deliveries that the script has seen of this box: the `which`-th from the
    last, whoever was handed it and whatever was said of it before."""

    box: int
    who: int
    what: tuple[tuple[int, Verdict], ...]


class Release(Struct, frozen=True):
    box: int
    who: int


class Attach(Struct, frozen=True):
    box: int
    who: int


class Reclaim(Struct, frozen=True):
    box: int
    who: int


class Sweep(Struct, frozen=True):
    box: int
    who: int


class Burn(Struct, frozen=True):
    """Fetch one and hand it back, again and again: it costs a delivery each time."""

    box: int
    who: int
    times: int


class Delete(Struct, frozen=True):
    box: int
    who: int


class Ensure(Struct, frozen=True):
    box: int
    who: int


class Restart(Struct, frozen=True):
    """A client leaves, in order or dead, and a new one comes."""

    who: int
    crash: bool


class RestartBroker(Struct, frozen=True):
    """The broker is killed and comes back; see `normal.owners_begin_again`."""


class PassTime(Struct, frozen=True):
    times: int


Step: TypeAlias = (
    Idle | Publish | Fetch | Park | Recall | Settle | Release | Attach | Reclaim | Sweep | Burn
    | Delete | Ensure | Restart | RestartBroker | PassTime
)  # fmt: skip

Script: TypeAlias = tuple[Step, ...]

_boxes = st.integers(0, BOXES - 1)
_clients = st.integers(0, CLIENTS - 1)
_verdicts: st.SearchStrategy[Verdict] = st.sampled_from(
    [Done(), HandBack(), Retry(SHORT_S), Done(), HandBack(), Retry(LONG_S), Dead("given up")]
    + [Retry(0.0)]
)
_said = st.lists(st.tuples(st.integers(0, 5), _verdicts), min_size=1, max_size=4).map(tuple)

_KINDS: Final[dict[type[Any], tuple[int, st.SearchStrategy[Any]]]] = {
    Idle: (1, st.builds(Idle)),
    Publish: (
        9,
        st.builds(Publish, topic=st.integers(0, TOPICS - 1), id=st.integers(0, 40), who=_clients),
    ),
    Fetch: (8, st.builds(Fetch, box=_boxes, most=st.integers(1, 4), who=_clients)),
    Settle: (9, st.builds(Settle, box=_boxes, who=_clients, what=_said)),
    Park: (2, st.builds(Park, box=_boxes, most=st.integers(1, 3), who=_clients)),
    Recall: (1, st.builds(Recall, box=_boxes, who=_clients)),
    Release: (1, st.builds(Release, box=_boxes, who=_clients)),
    Attach: (1, st.builds(Attach, box=_boxes, who=_clients)),
    Reclaim: (2, st.builds(Reclaim, box=_boxes, who=_clients)),
    Sweep: (1, st.builds(Sweep, box=_boxes, who=_clients)),
    Burn: (1, st.builds(Burn, box=_boxes, who=_clients, times=st.sampled_from([3, 23, 30]))),
    Delete: (1, st.builds(Delete, box=_boxes, who=_clients)),
    Ensure: (2, st.builds(Ensure, box=_boxes, who=_clients)),
    Restart: (1, st.builds(Restart, who=_clients, crash=st.booleans())),
    PassTime: (3, st.builds(PassTime, times=st.integers(1, 2))),
}


def steps() -> st.SearchStrategy[Step]:
    """One step; the first kind is the simplest."""
    weighted = [kind for kind, (weight, _) in _KINDS.items() for _ in range(weight)]
    return st.sampled_from(weighted).flatmap(lambda kind: _KINDS[kind][1])


def scripts(length: int) -> st.SearchStrategy[Script]:
    """Scripts of `length` steps; a broker that is killed is rare, for it takes half a second."""
    drawn = st.lists(steps(), min_size=length, max_size=length)
    killed = st.lists(st.integers(0, length - 1), max_size=1)
    return st.tuples(drawn, st.integers(0, 4), killed).map(_with_kills)


def _with_kills(drawn: tuple[list[Step], int, list[int]]) -> Script:
    script, chance, at = drawn
    if chance == 4:
        for index in at:
            script[index] = RestartBroker()
    return tuple(script)
