"""What goes wrong, and when: a list of decisions that the seed makes before the run begins.

Swarm: each seed enables some kinds only and turns its own knobs, so that rare combinations are
not drowned by the common ones. The list is all the chance that a shrinker takes away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Profile: TypeAlias = Literal["swarm", "lease", "mail", "poison", "moves"]
PROFILES: Final[tuple[Profile, ...]] = ("swarm", "lease", "mail", "poison", "moves")

FAULTS_S: Final = 300.0
"""How long things go wrong."""

PAUSES_S: Final = (1.0, 4.0, 14.0, 17.0, 25.0, 40.0)
"""Below, at and above the TTL of 20 s and the 17 s that a holder believes in (10 % either way)."""

FAILPOINTS: Final = (
    "before_lease_cas",
    "after_lease_cas",
    "before_attach",
    "after_attach",
    "after_fetch",
    "before_turn",
    "after_effect",
    "before_complete",
    "after_complete_before_ack",
    "after_dlq",
    "mid_defer",
    "before_release",
    "after_release",
    "before_reclaim",
    "after_reclaim",
    "before_ack",
)
"""Where a node may be killed exactly: edges of what it does at the broker."""


class Decision(Struct, frozen=True, array_like=True):
    """At `t`, `kind` befalls `node` (-1: all, or the broker), for `length_s`; `text` and `x` say
    more of it."""

    t: float
    kind: str
    node: int = -1
    length_s: float = 0.0
    x: float = 0.0
    text: str = ""


def told(decision: Decision) -> str:
    """A line for people: when, what, to which node, and for how long."""
    node = f"n{decision.node + 1}" if decision.node >= 0 else ""
    length = f"for {decision.length_s:g} s" if decision.length_s else ""
    words = (f"{decision.t:8.3f}", decision.kind, node, length, decision.text)
    return " ".join(word for word in words if word)


class Knobs(Struct, frozen=True):
    """What a seed turns. Rates are a second, chances between 0 and 1."""

    nodes: int = 3
    seats: int = 6
    publish_rate: float = 2.0
    keys: int = 4
    turn_s: float = 0.5
    long_turn_chance: float = 0.0
    linger_s: float = 0.0
    max_batch: int = 8
    nak_chance: float = 0.05
    defer_chance: float = 0.03
    poison_chance: float = 0.01
    corrupt_chance: float = 0.0
    drift_ppm: float = 500.0
    skew_s: float = 50.0
    shuffle: bool = True
    hold_back: int = 3
    command_rate: float = 0.0


class Plan(Struct, frozen=True):
    """All that a run takes from its seed before it begins. Times count from the end of boot."""

    seed: int
    profile: Profile
    knobs: Knobs
    decisions: tuple[Decision, ...]

    def only(self, decisions: Sequence[Decision]) -> Plan:
        """The same seed with fewer decisions."""
        return Plan(self.seed, self.profile, self.knobs, tuple(decisions))


# How often a kind happens in 300 s when it is enabled, and how likely it is enabled, by profile.
_RATES: Final[Mapping[str, tuple[float, Mapping[Profile, float]]]] = {
    "crash": (9, {"swarm": 0.8, "lease": 0.9, "mail": 0.5, "poison": 0.8}),
    "failpoint": (9, {"swarm": 0.7, "lease": 0.6, "mail": 0.8, "poison": 0.8}),
    "pause": (8, {"swarm": 0.7, "lease": 0.9, "mail": 0.4, "poison": 0.3}),
    "cut": (8, {"swarm": 0.7, "lease": 0.9, "mail": 0.7, "poison": 0.2}),
    "swizzle": (2, {"swarm": 0.3, "lease": 0.4, "mail": 0.2, "poison": 0.0}),
    "slow": (4, {"swarm": 0.5, "lease": 0.5, "mail": 0.5, "poison": 0.2}),
    "jump": (4, {"swarm": 0.5, "lease": 0.7, "mail": 0.2, "poison": 0.1}),
    "redeliver": (12, {"swarm": 0.5, "lease": 0.1, "mail": 0.8, "poison": 0.5}),
    "slow_acks": (5, {"swarm": 0.4, "lease": 0.1, "mail": 0.7, "poison": 0.2}),
    "broker_restart": (3, {"swarm": 0.4, "lease": 0.4, "mail": 0.6, "poison": 0.2}),
    "leader_loss": (3, {"swarm": 0.5, "lease": 0.8, "mail": 0.5, "poison": 0.1}),
    "watch_gap": (6, {"swarm": 0.5, "lease": 0.8, "mail": 0.1, "poison": 0.0}),
    "watch_late": (6, {"swarm": 0.4, "lease": 0.7, "mail": 0.1, "poison": 0.0}),
    "watch_twice": (6, {"swarm": 0.3, "lease": 0.5, "mail": 0.1, "poison": 0.0}),
    "wipe": (1, {"swarm": 0.1, "lease": 0.2, "mail": 0.05, "poison": 0.0}),
    "hold": (6, {"swarm": 0.5, "lease": 0.2, "mail": 0.9, "poison": 0.3}),
    "quiesce": (6, {"swarm": 0.4, "lease": 0.2, "mail": 0.8, "poison": 0.2}),
    "move": (100, {"swarm": 0.6, "lease": 0.8, "mail": 0.4, "poison": 0.3}),
    "leave": (6, {"swarm": 0.5, "lease": 0.8, "mail": 0.3, "poison": 0.3}),
    "storm": (2, {"swarm": 0.3, "lease": 0.1, "mail": 0.6, "poison": 0.3}),
}

KINDS: Final = tuple(_RATES)

MOVES: Final = 6000
"""Of the profile `moves`: that of `lease`, and twenty times a second an operator who moves a seat.
It meets the most hand-offs in a minute of computing: more orders than that are in vain, because
the seat is on its way already."""


def plan(seed: int, profile: Profile = "swarm", *, faults_s: float = FAULTS_S) -> Plan:
    """What the seed decides; the same for the same arguments, always."""
    chance = Random(f"plan {profile} {seed}")  # noqa: S311 - a simulation, not a secret
    like: Profile = "lease" if profile == "moves" else profile
    knobs = _knobs(chance, like)
    decisions: list[Decision] = []
    for kind, (rate, enabled) in _RATES.items():
        if chance.random() < enabled[like]:
            count = _poisson(chance, rate * chance.choice((0.3, 1.0, 2.0)) * faults_s / FAULTS_S)
            decisions += [_decide(kind, chance, knobs, faults_s) for _ in range(count)]
    if profile == "moves":
        count = _poisson(chance, MOVES * faults_s / FAULTS_S)
        decisions += [_decide("move", chance, knobs, faults_s) for _ in range(count)]
    return Plan(seed, profile, knobs, tuple(sorted(decisions, key=lambda one: one.t)))


def _knobs(chance: Random, profile: Profile) -> Knobs:
    poison = 0.15 if profile == "poison" else chance.choice((0.0, 0.01, 0.03))
    return Knobs(
        nodes=chance.choice((2, 3, 3, 3, 4, 5)),
        seats=chance.choice((3, 6, 8, 12)),
        publish_rate=chance.choice((0.5, 1.0, 2.0)),
        keys=chance.choice((1, 2, 4, 8)),
        turn_s=chance.choice((0.05, 0.5, 1.5, 4.0)),
        long_turn_chance=chance.choice((0.0, 0.05, 0.2)),
        linger_s=chance.choice((0.0, 0.0, 0.5, 2.0)),
        max_batch=chance.choice((1, 3, 8, 20)),
        nak_chance=chance.choice((0.0, 0.05, 0.2)),
        defer_chance=chance.choice((0.0, 0.03, 0.1)),
        poison_chance=poison,
        corrupt_chance=chance.choice((0.0, 0.0, 0.01)),
        drift_ppm=chance.choice((0.0, 100.0, 500.0)),
        skew_s=chance.choice((0.0, 5.0, 50.0)),
        shuffle=chance.random() < 0.5,
        hold_back=chance.choice((0, 1, 3, 6)),
    )


def _poisson(chance: Random, mean: float) -> int:
    """How many of something that happens `mean` times on average."""
    count, left = 0, mean
    while (left := left - chance.expovariate(1.0)) > 0:
        count += 1
    return count


def _decide(kind: str, chance: Random, knobs: Knobs, faults_s: float) -> Decision:
    t = round(chance.uniform(0.0, faults_s), 3)
    node = chance.randrange(knobs.nodes)
    seat = float(chance.randrange(knobs.seats))
    length_s = round(_length(kind, chance), 3)
    match kind:
        case "failpoint":
            name = chance.choice(FAILPOINTS)
            return Decision(t, kind, node, length_s, float(chance.randrange(1, 6)), name)
        case "pause":
            return Decision(t, kind, node, length_s, float(chance.randrange(0, 25)))
        case "cut":
            return Decision(t, kind, node, length_s, text=chance.choice(("both", "up", "down")))
        case "slow":
            return Decision(t, kind, node, length_s, chance.choice((10.0, 100.0, 400.0)))
        case "jump":
            return Decision(
                t, kind, node, 0.0, round(chance.uniform(-knobs.skew_s, knobs.skew_s), 3)
            )
        case "watch_late":
            return Decision(t, kind, node, length_s, chance.choice((0.3, 1.0, 3.0)))
        case "hold" | "quiesce" | "redeliver" | "storm":
            return Decision(t, kind, -1, length_s, seat)
        case "move":
            return Decision(t, kind, node, 0.0, seat)
        case "swizzle" | "broker_restart" | "wipe":
            return Decision(t, kind, -1, length_s)
        case "leader_loss":
            return Decision(t, kind, node, length_s)
        case _:
            return Decision(t, kind, node, length_s)


def _length(kind: str, chance: Random) -> float:
    match kind:
        case "crash" | "failpoint" | "leave":
            return chance.uniform(0.5, 30.0)
        case "pause":
            return chance.choice(PAUSES_S) * chance.uniform(0.9, 1.1)
        case "cut" | "swizzle":
            return chance.choice((0.1, 0.5, 2.0, 6.0, 18.0, 25.0)) * chance.uniform(0.9, 1.1)
        case "leader_loss":
            return chance.uniform(4.0, 12.0)
        case "broker_restart":
            return chance.uniform(0.1, 3.0)
        case "watch_gap" | "watch_late" | "slow" | "slow_acks":
            return chance.uniform(1.0, 30.0)
        case "hold" | "quiesce":
            return chance.uniform(0.5, 40.0)
        case _:
            return 0.0
