"""Three members pass both suites, each client at another one of them.

What differs from one server: a message is sent once a majority knows of it, and what a conditional
write is refused for may still be on its way.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from crewlet.broker.port import CompanyBroker
from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.broker.cluster import Cluster
from tests.conformance.real_harness import RealHarness

pytestmark = pytest.mark.long


class Members:
    """The broker of a fleet: whoever asks is at some member."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turns = itertools.count()

    def client(self, node_id: str) -> CompanyBroker:
        return self._cluster.client(next(self._turns) % 3)

    async def restart(self) -> None:
        raise NotImplementedError


@pytest.fixture(scope="module")
def members(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    runner.run(cluster.start())
    yield Members(cluster)
    runner.run(cluster.stop())


CASES = [
    pytest.param(case, id=case.name, marks=pytest.mark.certifies(9, *case.lines))
    for case in (*broker_cases, *store_cases)
    if case.needs is None
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case, runner: asyncio.Runner, members: Members) -> None:
    harness = RealHarness(members, case.name)

    async def main() -> None:
        try:
            async with asyncio.timeout(90):
                await case.run(harness)
        finally:
            await harness.close()

    runner.run(main())
