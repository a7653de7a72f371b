"""One server for all scripts of a file; hypothesis keeps nothing between runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.differential.differ import Bench
from tests.differential.servers import MortalServer
from tests.differential.worlds import Real


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
        yield Bench(runner, real)
