"""What a script of the queue is made of, and how hypothesis draws one."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

SEATS: Final = 2
QUEUES: Final = 2
KEYS: Final = "xyz"
REASONS: Final = ("run", "provider")
BACK_S: Final = 0.2
"""How long a failure waits, and how long a deferral rests."""

PASS_S: Final = 0.3

Said: TypeAlias = Literal["nothing", "ack", "nak", "defer", "raise"]


class Idle(Struct, frozen=True):
    """Nothing: what a step is shrunk to."""


class Send(Struct, frozen=True):
    """An event of this number; the same number again is the same event."""

    seat: int
    number: int
    key: str
    at: int
    who: int


class Say(Struct, frozen=True):
    """The handler that has run longest on this seat ends like this."""

    seat: int
    said: Said


class Hold(Struct, frozen=True):
    seat: int
    who: int
    reason: str


class Lift(Struct, frozen=True):
    seat: int
    who: int
    reason: str


class Quiesce(Struct, frozen=True):
    seat: int
    who: int


class Unquiesce(Struct, frozen=True):
    seat: int
    who: int


class Detach(Struct, frozen=True):
    seat: int
    who: int


class Subscribe(Struct, frozen=True):
    """Unless another queue is attached: who of two gets a message is nobody's promise."""

    seat: int
    who: int


class Restart(Struct, frozen=True):
    """The queue stops and starts; what ran is cut."""

    who: int


class RestartBroker(Struct, frozen=True):
    """The broker is killed and comes back; the queues find back by themselves."""


class LetGo(Struct, frozen=True):
    """Every brake is lifted, and every seat attached: how each script ends."""


class PassTime(Struct, frozen=True):
    times: int


Step: TypeAlias = (
    Idle | Send | Say | Hold | Lift | Quiesce | Unquiesce | Detach | Subscribe | Restart
    | RestartBroker | LetGo | PassTime
)  # fmt: skip

Script: TypeAlias = tuple[Step, ...]

_seat = {"seat": st.integers(0, SEATS - 1)}
_who = {"who": st.integers(0, QUEUES - 1)}
_both = _seat | _who
_reason = {"reason": st.sampled_from(REASONS)}
_said: list[Said] = ["ack", "nothing", "nak", "defer", "raise", "nak", "defer"]

_KINDS: Final[dict[type[Any], tuple[int, st.SearchStrategy[Any]]]] = {
    Idle: (1, st.builds(Idle)),
    Send: (
        12,
        st.builds(
            Send,
            number=st.integers(0, 60),
            key=st.sampled_from(KEYS),
            at=st.integers(0, 9),
            **_both,
        ),
    ),
    Say: (12, st.builds(Say, said=st.sampled_from(_said), **_seat)),
    Hold: (2, st.builds(Hold, **_both, **_reason)),
    Lift: (2, st.builds(Lift, **_both, **_reason)),
    Quiesce: (2, st.builds(Quiesce, **_both)),
    Unquiesce: (3, st.builds(Unquiesce, **_both)),
    Detach: (2, st.builds(Detach, **_both)),
    Subscribe: (4, st.builds(Subscribe, **_both)),
    Restart: (1, st.builds(Restart, **_who)),
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
