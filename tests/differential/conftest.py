"""One server for all scripts of a file; hypothesis keeps nothing between runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from tests.differential.differ import Bench
from tests.differential.servers import MortalServer
from tests.differential.worlds import Real

SLOW_ONCE: Final = 5
"""Of the hundreds of scripts of a file, so many may part once and not again."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """The server, for whoever needs it alone."""
    server = MortalServer(tmp_path_factory.mktemp("differential"))
    server.start()
    yield Real(server)
    server.stop()


@pytest.fixture(scope="module")
def bench(real: Real) -> Iterator[Bench]:
    """Where scripts are played."""
    with asyncio.Runner() as runner:
        bench = Bench(runner, real)
        yield bench
    assert len(bench.once) <= SLOW_ONCE, "\n".join(bench.once)
