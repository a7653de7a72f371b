"""The ids of tests that faults name."""

from __future__ import annotations


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


def runtime(test: str) -> str:
    return f"tests/actors/runtime/test_{test}"


def node(test: str) -> str:
    return f"tests/node/test_{test}"


def inbound(test: str) -> str:
    return f"tests/inbound/test_{test}"


def publisher(test: str) -> str:
    return f"tests/queue/test_publisher.py::{test}"


def jetstream(test: str) -> str:
    return f"tests/broker/test_jetstream_{test}"
