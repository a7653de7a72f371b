"""The wire against a server of the test's own making: what no real server does on demand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from actors.ports import Unavailable
from crewlet.broker.dial import PENDING_BYTES, Address
from crewlet.broker.route import Message
from crewlet.broker.wire import Wire
from tests.broker.real import until

INFO = b'INFO {"version": "2.15.1", "max_payload": 9000000, "headers": true}\r\n'


class Scripted:
    """A server that shakes hands, answers PINGs, and leaves the rest to the test. `said` is
    what clients wrote after their handshake, on all connections; closed, it hears no more."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.connections: list[asyncio.StreamWriter] = []
        self.hears = asyncio.Event()
        self.hears.set()
        self.answers_pings = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        await reader.readuntil(b"PING\r\n")
        writer.write(b"PONG\r\n")
        self.connections.append(writer)
        while True:
            await self.hears.wait()
            data = await reader.read(1 << 20)
            if not data:
                return
            self.said += data
            if self.answers_pings:
                writer.write(b"PONG\r\n" * data.count(b"PING\r\n"))

    def say(self, data: bytes) -> None:
        self.connections[-1].write(data)

    async def break_off(self) -> None:
        self.connections[-1].close()
        await self.connections[-1].wait_closed()


@contextlib.asynccontextmanager
async def scripted() -> AsyncIterator[tuple[Scripted, Wire]]:
    script = Scripted()
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0, limit=1 << 16)
    port = server.sockets[0].getsockname()[1]
    wire = Wire(Address((f"nats://127.0.0.1:{port}",)))
    await wire.open(5)
    try:
        yield script, wire
    finally:
        script.hears.set()
        await wire.close()
        server.close()


def _bodies(number: int) -> list[bytes]:
    return [b"%04d" % at for at in range(number)]


def test_a_connection_that_breaks_inside_of_a_message_leaves_nothing_of_it() -> None:
    async def play() -> None:
        async with scripted() as (script, wire):
            heard: list[bytes] = []
            route = wire.route("a.b", lambda message: heard.append(message.data))
            await until(lambda: b"SUB a.b" in script.said)
            script.say(b"MSG a.b %d 4\r\n0000\r\nMSG a.b %d 400\r\nbro" % (route.sid, route.sid))
            await until(lambda: heard)
            await script.break_off()
            await until(lambda: len(script.connections) == 2 and wire.connected)
            await until(lambda: script.said.count(b"SUB a.b") == 2)
            script.say(b"MSG a.b %d 4\r\n0001\r\n" % route.sid)
            await until(lambda: len(heard) == 2)
            assert heard == [b"0000", b"0001"]

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_barrier_is_over_when_all_that_was_sent_before_it_is_delivered() -> None:
    async def play() -> None:
        async with scripted() as (script, wire):
            heard: list[bytes] = []
            route = wire.route("a.b", lambda message: heard.append(message.data))
            await until(lambda: b"SUB a.b" in script.said)
            script.answers_pings = False
            wire.send("c.d", b"before")
            barrier = asyncio.create_task(wire.barrier(10))
            await until(lambda: b"PING" in script.said)
            assert script.said.index(b"before") < script.said.index(b"PING")
            wanted = _bodies(500)
            data = b"".join(b"MSG a.b %d 4\r\n%s\r\n" % (route.sid, body) for body in wanted)
            seen: list[int] = []
            barrier.add_done_callback(lambda _: seen.append(len(heard)))
            for piece in (data[:700], data[700:] + b"PO", b"NG\r\n"):
                script.say(piece)
                await asyncio.sleep(0.01)
            assert await barrier and seen == [500] and heard == wanted

    asyncio.run(asyncio.wait_for(play(), 30))


def test_what_is_sent_at_once_and_soon_goes_out_in_its_order() -> None:
    async def play() -> None:
        async with scripted() as (script, wire):
            wanted = _bodies(300)
            for at, body in enumerate(wanted):
                if at % 3 == 0:
                    wire.send_soon([("a.b", body)])
                elif at % 3 == 1:
                    wire.send("a.b", body)
                else:
                    assert wire._client is not None
                    await wire._client.publish("a.b", body)  # through nats-py's own flusher
                if at % 7 == 0:
                    await asyncio.sleep(0)
            wire.send_soon([("a.b", b"last")])
            await until(lambda: b"last" in script.said)
            said = [bytes(line) for line in script.said.split(b"\r\n") if line[:2].isdigit()]
            assert said == wanted

    asyncio.run(asyncio.wait_for(play(), 30))


def test_behind_a_socket_that_is_stuck_only_so_much_waits() -> None:
    mebibyte = b"x" * (1 << 20)

    async def play() -> None:
        async with scripted() as (script, wire):
            script.hears.clear()
            sent = 0
            with pytest.raises(Unavailable, match="too much waits"):
                while sent < 2 * PENDING_BYTES // len(mebibyte):
                    wire.send("a.b", b"%04d" % sent + mebibyte)
                    sent += 1
                    await asyncio.sleep(0)
            client = wire._client
            assert client is not None and client._transport is not None
            buffered = client._transport._io_writer.transport.get_write_buffer_size()
            assert client._pending_data_size <= PENDING_BYTES
            assert buffered < 4 * len(mebibyte), "what waits has to wait where it is counted"
            script.hears.set()
            await until(lambda: script.said.count(b"PUB a.b") == sent)
            heads = [script.said.index(b"\r\n%04dxx" % at) for at in range(sent)]
            assert heads == sorted(heads)

    asyncio.run(asyncio.wait_for(play(), 60))


def test_what_was_taken_back_while_the_server_is_away_is_never_sent() -> None:
    async def play() -> None:
        async with scripted() as (script, wire):
            await script.break_off()
            await until(lambda: not wire.connected)
            wire.send("a.b", b"first")
            wire.forget(wire.send("a.b", b"regretted"))
            wire.send("a.b", b"last")
            await until(lambda: b"last" in script.said)
            assert b"first" in script.said and b"regretted" not in script.said

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_message_of_a_form_that_only_nats_py_reads_is_delivered_all_the_same() -> None:
    async def play() -> None:
        async with scripted() as (script, wire):
            heard: list[Message] = []
            route = wire.route("a.b", heard.append)
            await until(lambda: b"SUB a.b" in script.said)
            head = b"NATS/1.0\r\nA: b\r\n\r\n"
            script.say(b"HMSG  a.b\t%d c.d  %d %d\r\n" % (route.sid, len(head), len(head) + 4))
            script.say(head + b"body\r\n")
            await until(lambda: heard)
            assert heard == [Message("a.b", "c.d", b"body", {"A": "b"})]

    asyncio.run(asyncio.wait_for(play(), 30))
