"""A redis-server of the benchmark's own: a child on a free port, as durable as asked."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from crewlet.broker.settings import Sync

PROGRAM: Final = "redis-server"
READY_S: Final = 10.0
POLL_S: Final = 0.01

FSYNC: Final = {"always": "always", "interval": "everysec"}
"""What comes closest to how the broker keeps its files."""


def find_redis() -> str | None:
    """The program, or None: then the peers that need it are missing."""
    return shutil.which(PROGRAM)


@asynccontextmanager
async def redis_server(folder: Path, sync: Sync) -> AsyncIterator[str]:
    """Its address, while it runs."""
    port = _free_port()
    program = find_redis()
    assert program is not None
    child = await asyncio.create_subprocess_exec(
        *(program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
        *("--appendonly", "yes", "--appendfsync", FSYNC[sync], "--save", ""),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await _answers(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        child.terminate()
        await child.wait()


async def _answers(port: int) -> None:
    async with asyncio.timeout(READY_S):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(POLL_S)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
