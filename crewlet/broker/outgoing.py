"""What waits to be written to a connection: nats-py's own list, which a reconnect keeps."""

from __future__ import annotations

import asyncio
from typing import Final

from nats.aio.client import Client

from actors.ports import Unavailable
from crewlet.broker.dial import PENDING_BYTES

ROOM_BYTES: Final = 64 * 1024
"""What a socket may be behind before it is waited for: asyncio's own mark."""


def queue(client: Client, data: bytes) -> None:
    """Behind what waits already; Unavailable where that is too much."""
    if client._pending_data_size + len(data) > PENDING_BYTES:
        raise Unavailable("too much waits for the broker already")
    client._pending.append(data)
    client._pending_data_size += len(data)


def take_back(client: Client, data: bytes) -> None:
    """What still waits is not sent after all."""
    for at, waiting in enumerate(client._pending):
        if waiting is data:
            del client._pending[at]
            client._pending_data_size -= len(data)
            return


def take_back_all(client: Client, begins: bytes) -> None:
    """The same for whatever begins like this."""
    client._pending = [data for data in client._pending if not data.startswith(begins)]
    client._pending_data_size = sum(map(len, client._pending))


def write(client: Client) -> None:
    """All of it, now. As nats-py's flusher does it, in one step: nobody's order changes."""
    if client._pending_data_size > 0 and client._transport is not None:
        client._transport.writelines(client._pending[:])
        client._pending = []
        client._pending_data_size = 0


def write_or_wait(client: Client) -> None:
    """All of it, without waking a task; by nats-py's flusher where the socket is behind, so
    that what comes meanwhile waits here, where it is counted and can be taken back."""
    if not client.is_connected or not client._pending:
        return
    if _has_room(client):
        write(client)
    elif client._flush_queue is not None and client._flush_queue.empty():
        client._flush_queue.put_nowait(asyncio.get_running_loop().create_future())


def _has_room(client: Client) -> bool:
    writer = getattr(client._transport, "_io_writer", None)  # a websocket has none
    return writer is not None and writer.transport.get_write_buffer_size() < ROOM_BYTES
