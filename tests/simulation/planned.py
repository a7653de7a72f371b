"""Plans that look for one thing: what the profiles of `crewlet simulate` meet once in a thousand
seeds. The seed still decides everything beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from msgspec.structs import replace

from actors.simulation.faults import PROFILES, Decision, Knobs, Plan, plan
from actors.simulation.run import Outcome, run
from crewlet.testing.simulated.campaign import rules_of
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import TwinSite

_STEADY: Final = {
    "nodes": 3, "seats": 6, "publish_rate": 3.0, "nak_chance": 0.0, "defer_chance": 0.0,
    "poison_chance": 0.0, "corrupt_chance": 0.0,
}  # fmt: skip


def busy(seed: int, faults_s: float) -> Plan:
    """Turns that fail and defer, in drains of several conversations; holds that land in them; and
    nodes that are killed between a completion and its acknowledgement."""
    chance, knobs = _begin(
        "busy", seed, turn_s=0.3, nak_chance=0.15, defer_chance=0.15, linger_s=0.5, max_batch=8,
        keys=4, poison_chance=0.02,
    )  # fmt: skip
    happens = [
        Decision(float(t), "failpoint", chance.randrange(3), 1.0, 1.0, "after_complete_before_ack")
        for t in range(10, int(faults_s), 10)
    ]
    happens += [
        Decision(t + chance.random(), "hold", -1, 1.0, float(chance.randrange(6)))
        for t in range(2, int(faults_s))
    ]
    return _planned(seed, knobs, happens)


def braked(seed: int, faults_s: float) -> Plan:
    """Nothing goes wrong, and seats with mail are held for a while."""
    chance, knobs = _begin("braked", seed, turn_s=0.05, max_batch=3)
    happens = [
        Decision(t + chance.random(), "hold", -1, chance.uniform(4.0, 12.0), float(t % 6))
        for t in range(8, int(faults_s))
    ]
    return _planned(seed, knobs, happens)


def zombies(seed: int, faults_s: float) -> Plan:
    """Lines are slow, and nodes stand still for longer than a session lasts: what they had written
    of a turn goes out when they wake."""
    chance, knobs = _begin("zombies", seed, seats=12, long_turn_chance=0.4, hold_back=6)
    slow = [Decision(0.5, "slow", node, faults_s, 200.0) for node in range(3)]
    stopped = [
        Decision(float(t), "pause", chance.randrange(3), chance.uniform(20.5, 26.0), 0.0)
        for t in range(8, int(faults_s), 8)
    ]
    return _planned(seed, knobs, [*slow, *stopped])


def stops(seed: int, faults_s: float) -> Plan:
    """Nodes stand still for longer than a renewal is good for a turn, and some that were killed
    as they begin again."""
    chance, knobs = _begin("stops", seed, turn_s=0.05, max_batch=1)
    happens: list[Decision] = []
    for t in range(2, int(faults_s), 10):
        for node in range(3):
            calls, at = float(chance.randrange(25)), t + chance.uniform(0.0, 5.0)
            length_s = chance.uniform(6.5, 12.0)
            if chance.random() < 0.7:
                happens.append(Decision(at, "crash", node, 1.0))
                at, length_s = at + 1.0 + chance.uniform(0.0, 0.01), chance.uniform(2.0, 6.0)
            happens.append(Decision(at, "pause", node, length_s, calls))
    return _planned(seed, replace(knobs, shuffle=True), happens)


def reborn(seed: int, faults_s: float) -> Plan:
    """Nodes are killed, and stand still just as their next process has asked for its session."""
    chance, knobs = _begin("reborn", seed, turn_s=0.05, max_batch=1)
    happens: list[Decision] = []
    for t in range(2, int(faults_s), 4):
        node, begun = chance.randrange(3), t + 1.0 + chance.uniform(0.002, 0.008)
        happens.append(Decision(float(t), "crash", node, 1.0))
        happens.append(Decision(begun, "pause", node, chance.uniform(3.0, 5.5), 0.0))
    return _planned(seed, knobs, happens)


def sleepers(seed: int, faults_s: float) -> Plan:
    """Little mail, and nodes that sleep beyond their session with a fetch standing at the broker:
    what comes then is handed to them."""
    chance, knobs = _begin("sleepers", seed, seats=12, publish_rate=0.3, turn_s=0.05)
    asleep = [Decision(chance.uniform(8.0, 12.0), "pause", chance.randrange(3), 40.0)]
    return _planned(seed, knobs, asleep)


def unheard(seed: int, faults_s: float) -> Plan:
    """What nodes ask for is done, and they do not hear of it, for about as long as they try."""
    chance, knobs = _begin("unheard", seed, turn_s=0.05, max_batch=3)
    cuts = [
        Decision(t + chance.uniform(0.0, 5.0), "cut", chance.randrange(3),
                 chance.uniform(4.5, 7.5), text="down")
        for t in range(1, int(faults_s), 6)
    ]  # fmt: skip
    return _planned(seed, knobs, cuts)


def worn(seed: int, faults_s: float) -> Plan:
    """Every other message fails always, and nodes are killed all the time: some at the last
    delivery of a message."""
    chance, knobs = _begin("worn", seed, poison_chance=0.5, turn_s=1.0, publish_rate=0.5)
    kills = [
        Decision(t + chance.uniform(0.0, 2.0), "crash", chance.randrange(3), 0.5)
        for t in range(10, int(faults_s), 2)
    ]
    return _planned(seed, knobs, kills)


def buried(seed: int, faults_s: float) -> Plan:
    """Every other message fails always, and nodes are killed as a message has just died."""
    chance, knobs = _begin("buried", seed, poison_chance=0.5, turn_s=0.05, publish_rate=1.0)
    kills = [
        Decision(t + chance.random(), "failpoint", node, 1.0, 1.0, "after_dlq")
        for t in range(15, int(faults_s), 15)
        for node in range(3)
    ]
    return _planned(seed, knobs, kills)


def commanded(seed: int, faults_s: float) -> Plan:
    """Control mail all the time, for seats that are held, quiesced, moved, and long at work."""
    chance, knobs = _begin("commanded", seed, long_turn_chance=0.5, command_rate=2.0)
    brakes = ("hold", "quiesce", "move")
    happens = [
        Decision(t + chance.random(), chance.choice(brakes), chance.randrange(3),
                 chance.uniform(2.0, 20.0), float(chance.randrange(6)))
        for t in range(1, int(faults_s), 2)
    ]  # fmt: skip
    return _planned(seed, knobs, happens)


def outlived(seed: int, faults_s: float) -> Plan:
    """Lines are away for longer than a client repairs, and for less than a session lasts: a fetch
    whose answer was lost is in nobody's hands, and its holder holds the seat still."""
    chance, knobs = _begin("outlived", seed, turn_s=0.05, max_batch=3)
    cuts = [
        Decision(t + chance.uniform(0.0, 3.0), "cut", node, chance.uniform(10.2, 11.8),
                 text=chance.choice(("down", "both")))
        for t in range(2, int(faults_s), 20)
        for node in range(3)
    ]  # fmt: skip
    return _planned(seed, knobs, cuts)


def belated(seed: int, faults_s: float) -> Plan:
    """Lines that are to be cut one after the other, some of them when all of it is to be over."""
    _, knobs = _begin("belated", seed, turn_s=0.05, poison_chance=0.5)
    return _planned(seed, knobs, [Decision(faults_s - 0.1, "swizzle", -1, 25.0)])


def restarting(seed: int, faults_s: float) -> Plan:
    """The broker is still away, with mail that is due again meanwhile, when all of it is over."""
    _, knobs = _begin("restarting", seed, turn_s=0.05, poison_chance=0.5)
    return _planned(seed, knobs, [Decision(faults_s - 1.0, "broker_restart", -1, 3.0)])


PLANS: Final[Mapping[str, Callable[[int, float], Plan]]] = {
    "braked": braked,
    "busy": busy,
    "zombies": zombies,
    "stops": stops,
    "reborn": reborn,
    "sleepers": sleepers,
    "unheard": unheard,
    "worn": worn,
    "buried": buried,
    "commanded": commanded,
    "outlived": outlived,
    "belated": belated,
    "restarting": restarting,
}


def planned(name: str, seed: int, faults_s: float) -> Plan:
    """Of these, or of a profile of the simulation."""
    if name in PLANS:
        return PLANS[name](seed, faults_s)
    profile = next(one for one in PROFILES if one == name)
    return plan(seed, profile, faults_s=faults_s)


def played(name: str, seed: int, faults_s: float) -> Outcome:
    this = planned(name, seed, faults_s)
    with quiet():
        return run(this, TwinSite, rules=rules_of(this), faults_s=faults_s)


def _begin(name: str, seed: int, **knobs: float) -> tuple[Random, Knobs]:
    chance = Random(f"{name} {seed}")
    return chance, replace(plan(seed).knobs, **{**_STEADY, **knobs})


def _planned(seed: int, knobs: Knobs, happens: list[Decision]) -> Plan:
    return Plan(seed, "swarm", knobs, tuple(sorted(happens, key=lambda one: one.t)))
