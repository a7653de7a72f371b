"""The ids of tests that faults name."""

from __future__ import annotations

from typing import Final, NamedTuple


def queue(case: str) -> str:
    """A case of the queue's suite, over the twin."""
    return f"tests/conformance/test_queue_twin.py::test_case[{case}]"


def twin(case: str) -> str:
    """A case of the broker's suite, over the twin."""
    return f"tests/conformance/test_twin.py::test_case[{case}]"


def real(case: str) -> str:
    """A case of the broker's suite, over JetStream."""
    return f"tests/conformance/test_real.py::test_case[external-{case}]"


def machines(test: str) -> str:
    return f"tests/actors/machines/test_{test}"


def system(test: str) -> str:
    return f"tests/actors/system/test_{test}"


def runtime(test: str) -> str:
    return f"tests/actors/runtime/test_{test}"


def node(test: str) -> str:
    return f"tests/node/test_{test}"


def inbound(test: str) -> str:
    return f"tests/inbound/test_{test}"


def colleagues(test: str) -> str:
    return f"tests/a2a/test_{test}"


def runs(test: str) -> str:
    return f"tests/runs/test_{test}"


def schedule(test: str) -> str:
    return f"tests/schedule/test_{test}"


def publisher(test: str) -> str:
    return f"tests/queue/test_publisher.py::{test}"


def jetstream(test: str) -> str:
    return f"tests/broker/test_jetstream_{test}"


SIMULATED: Final = "tests/simulation"
SEEDS: Final = f"{SIMULATED}/test_seeds.py::test_keeps"

RARE: Final = ("S4-zombies", "S12-worn", "L3-lease-1..24", "L3-sleepers")
"""How cases begin that are played by the campaign and by `make long` only: they need many seeds,
and another fault of the same number is seen on few."""


def seeds(invariant: str, plan: str, last: int, *, first: int = 1, minutes: int = 1) -> str:
    """Seeds of a profile of the simulation, or of a plan of tests/simulation/planned.py: without
    the fault they keep every promise, and with it one of them breaks this one."""
    return f"{SEEDS}[{invariant}-{plan}-{first}..{last}-{minutes}]"


class Seeds(NamedTuple):
    """A case of `seeds`, read back."""

    invariant: str
    plan: str
    numbers: range
    minutes: int
    rare: bool


def read_seeds(case: str) -> Seeds:
    """Of its whole id, or of what stands between the brackets."""
    case = case.removeprefix(f"{SEEDS}[").removesuffix("]")
    invariant, plan, span, minutes = case.split("-")
    first, last = map(int, span.split(".."))
    numbers = range(first, last + 1)
    return Seeds(invariant, plan, numbers, int(minutes), case.startswith(RARE))
