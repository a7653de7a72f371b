"""Which faults a run has, in which order, drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from tests.chaos.link import Mode

Kind = Literal[
    "kill", "stop", "cut", "broker-kill", "broker-stop", "broker-cut", "move", "roll", "apply",
    "full-disk",
]  # fmt: skip
KINDS: Sequence[Kind] = get_args(Kind)

LINKS: Sequence[Mode] = ("cut", "silent", "deaf", "mute", "slow")

NTH = {
    "before_lease_cas": 12,
    "after_lease_cas": 12,
    "before_attach": 9,
    "after_fetch": 40,
    "before_turn": 120,
    "after_effect": 120,
    "before_complete": 120,
    "after_complete_before_ack": 120,
    "mid_defer": 6,
    "before_release": 2,
    "after_release": 2,
    "mid_batch_linger": 30,
}
"""Up to which time of reaching it a failpoint is armed: within some seconds of a node's life.
`after_dlq_before_term` is reached by poison only (tests/chaos/test_field_poison.py)."""


OF_APPLIES = {"mid_config_apply": 1, "after_config_activated": 1, "mid_config_take": 2}
"""Those that are reached where a revision is applied: armed in runs that apply some."""


class Budget(Struct, frozen=True):
    """How many of each. Kills at failpoints count as kills, stops at failpoints as stops."""

    kill: int = 0
    stop: int = 0
    cut: int = 0
    broker_kill: int = 0
    broker_stop: int = 0
    broker_cut: int = 0
    move: int = 0
    roll: int = 0
    apply: int = 0
    full_disk: int = 0

    def of(self, kind: Kind) -> int:
        return int(getattr(self, kind.replace("-", "_")))


class Fault(Struct, frozen=True):
    """`victim` and `other` pick among those there are. `share`: of its length in TTLs."""

    kind: Kind
    pause_s: float
    victim: int
    other: int
    share: float
    link: Mode
    failpoint: str


def draw(seed: int, budget: Budget, ttl_s: float, pace: float = 1.0) -> list[Fault]:
    """All faults of a run, shuffled. `pace` stretches what is between them."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS for _ in range(budget.of(kind))]
    rng.shuffle(kinds)
    return [_fault(rng, kind, ttl_s * pace, applies=bool(budget.apply)) for kind in kinds]


def _fault(rng: random.Random, kind: Kind, ttl_s: float, *, applies: bool) -> Fault:
    share = {
        "kill": rng.choice((0.0, rng.uniform(0.0, 0.5), rng.uniform(1.2, 1.6))),
        "stop": 2.0,
        "cut": rng.choice((0.2, 0.6, 1.3, 2.0)),
        "broker-kill": rng.uniform(0.02, 0.4),
        "broker-stop": rng.choice((0.3, 0.7, 1.3)),
        "broker-cut": rng.choice((0.5, 1.5, 3.0)),
        "full-disk": rng.choice((0.5, 1.0, 2.0)),
    }.get(kind, 0.0)
    return Fault(
        kind=kind,
        pause_s=rng.uniform(0.1, 0.9) * ttl_s,
        victim=rng.randrange(1000),
        other=rng.randrange(1000),
        share=share,
        link=rng.choice(LINKS),
        failpoint=draw_failpoint(rng, applies=applies),
    )


def draw_failpoint(rng: random.Random, *, applies: bool = False) -> str:
    """What the next life of a killed node is started with; one in five is left alone."""
    if rng.random() < 0.2:
        return ""
    places = NTH | OF_APPLIES if applies else NTH
    name = rng.choice(sorted(places))
    how = "stop" if rng.random() < 0.25 else "kill"
    return f"{name}:{rng.randint(1, places[name])}={how}"


def comes(failpoint: str) -> bool:
    """Whether a node that is armed so dies of it sooner or later, whatever else happens."""
    return failpoint.partition(":")[0] in NTH
