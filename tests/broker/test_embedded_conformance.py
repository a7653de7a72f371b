"""Both suites over a server of our own; a restart is a kill -9 that its supervisor repairs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.broker.real import Real
from tests.conformance.real_harness import RealHarness

Served = tuple[asyncio.Runner, Real]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    real = Real(tmp_path_factory.mktemp("broker"))
    with asyncio.Runner() as runner:
        runner.run(real.server.start())
        yield runner, real
        runner.run(real.server.stop())


def _cases() -> list[object]:
    cases = [case for case in (*broker_cases, *store_cases) if case.needs != "virtual_time"]
    return [pytest.param(c, id=c.name, marks=pytest.mark.certifies(2, *c.lines)) for c in cases]


@pytest.mark.parametrize("case", _cases())
def test_case(case: Case, served: Served) -> None:
    runner, real = served

    async def play() -> None:
        harness = RealHarness(real, case.name)
        try:
            async with asyncio.timeout(30):
                await case.run(harness)
        finally:
            await harness.close()

    runner.run(play())
