"""The queue over JetStream: on a server of an operator's, and on the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from crewlet.testing.conformance import QueueCase, queue_cases
from tests.conformance.queue_real import Embedded, External, Server, run

LINES = {"external": (2, 8), "embedded": (2, 4, 6)}
SERVERS = {"external": External, "embedded": Embedded}

KNOWN: dict[str, str] = {}
"""What JetStream does not keep yet, and why. A case that passes again fails here."""


@pytest.fixture(scope="module")
def servers(
    runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """Those that were asked for, each started once."""
    started: dict[str, Server] = {}
    yield started
    for server in started.values():
        runner.run(server.close())


def _marks(broker: str, case: QueueCase) -> list[pytest.MarkDecorator]:
    if case.name in KNOWN:
        return [pytest.mark.xfail(reason=KNOWN[case.name], strict=True)]
    return [pytest.mark.certifies(*LINES[broker], *case.lines)]


CASES = [
    pytest.param(
        broker,
        case,
        id=f"{broker}-{case.name}",
        marks=_marks(broker, case),
    )
    for broker in LINES
    for case in queue_cases
    if case.needs != "virtual_time"
]


@pytest.mark.parametrize(("broker", "case"), CASES)
def test_case(
    broker: str,
    case: QueueCase,
    runner: asyncio.Runner,
    servers: dict[str, Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if broker not in servers:
        server = SERVERS[broker](tmp_path_factory.mktemp(broker))
        runner.run(server.start())
        servers[broker] = server
    runner.run(run(servers[broker], case))
