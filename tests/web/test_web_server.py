"""The server against clients that lie, trickle, hang or never leave."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from web_edge import head, node, signed, until

from crewlet.errors import NodeRefused
from crewlet.web import Limits, WebServer, make_app

BODY = b'{"action":"opened"}'
SMALL = Limits(body_bytes=1000, body_s=0.3)


class TestSizes:
    """T17: the limit holds before the body is read, whatever is claimed."""

    def test_a_claim_above_the_limit_is_refused_before_a_byte_of_it(self) -> None:
        async def play() -> None:
            async with node() as n:
                reader, writer = await n.connect()
                writer.write(head(BODY, "content-length: 6291457"))
                line = await asyncio.wait_for(reader.readline(), 5)
                assert line.startswith(b"HTTP/1.1 413")
                writer.close()
                assert n.edge.accepted == []

        asyncio.run(play())

    def test_the_largest_body_is_taken_and_one_byte_more_is_not(self) -> None:
        async def play() -> None:
            async with node() as n:
                body = b'"' + b"x" * (6 * 1024 * 1024 - 2) + b'"'
                assert (await n.post(body)).status_code == 202
                assert (await n.post(body + b" ")).status_code == 413

        asyncio.run(play())

    def test_chunks_are_counted(self) -> None:
        async def play() -> None:
            async with node(SMALL) as n:
                chunk = b"64\r\n" + b" " * 100 + b"\r\n"
                reader, writer = await n.connect()
                writer.write(head(BODY, "transfer-encoding: chunked") + chunk * 11)
                assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
                writer.close()

                exact = b"13\r\n" + BODY + b"\r\n0\r\n\r\n"
                answer = await n.raw(
                    head(BODY, "transfer-encoding: chunked", "connection: close") + exact
                )
                assert b" 202 " in answer

        asyncio.run(play())

    def test_a_length_that_promises_too_much_ends_in_a_timeout_or_nothing(self) -> None:
        async def play() -> None:
            async with node(SMALL) as n:
                assert b" 408 " in await n.raw(head(BODY, "content-length: 500") + BODY)
                _, writer = await n.connect()
                writer.write(head(BODY, "content-length: 500") + BODY)
                await writer.drain()
                writer.close()
                assert (await n.post(BODY)).status_code == 202
                assert len(n.edge.accepted) == 1

        asyncio.run(play())

    def test_a_length_that_promises_too_little_cuts_the_body(self) -> None:
        async def play() -> None:
            async with node() as n:
                start = head(BODY, "content-length: 10", "connection: close")
                answer = await n.raw(start + BODY)
                assert b" 401 " in answer.split(b"\r\n")[0] and n.edge.accepted == []

        asyncio.run(play())

    def test_broken_chunks_publish_nothing(self) -> None:
        async def play() -> None:
            async with node() as n:
                answer = await n.raw(head(BODY, "transfer-encoding: chunked") + b"zz\r\n" + BODY)
                assert b" 400 " in answer.split(b"\r\n")[0] and n.edge.accepted == []

        asyncio.run(play())

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"nonsense\r\n\r\n", b"400"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50 + b"\r\n\r\n", b"400"),
            (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 70_000, b"431"),
            (head(BODY, "content-length: -1"), b"400"),
            (head(BODY, "content-length: 5", "content-length: 6"), b"400"),
        ],
        ids=["nonsense", "tls", "head", "negative", "two-lengths"],
    )
    def test_what_is_no_request_is_refused_as_json(self, data: bytes, status: bytes) -> None:
        async def play() -> None:
            async with node() as n:
                answer = await n.raw(data)
                assert answer.split(b" ")[1] == status and b'{"error":' in answer
                assert (await n.client.get("/health")).status_code == 200

        asyncio.run(play())


class TestSlowClients:
    """T19."""

    def test_two_hundred_that_trickle_block_nobody_and_are_dropped(self) -> None:
        async def play() -> None:
            async with node(head_s=0.5) as n:
                slow = [await n.connect() for _ in range(200)]
                for _, writer in slow:
                    writer.write(b"POST /webhooks/github HTTP/1.1\r\nhost: a\r\n")
                started = time.monotonic()
                assert (await n.post(BODY)).status_code == 202
                assert time.monotonic() - started < 0.5

                async def trickle(writer: asyncio.StreamWriter) -> None:
                    while True:
                        writer.write(b"x")
                        await asyncio.sleep(0.1)

                trickles = [asyncio.create_task(trickle(writer)) for _, writer in slow[:20]]
                ended = await asyncio.wait_for(
                    asyncio.gather(*(r.read() for r, _ in slow), return_exceptions=True), 5
                )
                assert len(ended) == 200
                for task in trickles:
                    task.cancel()
                for _, writer in slow:
                    writer.close()

        asyncio.run(play())

    def test_a_second_head_is_bounded_like_the_first(self) -> None:
        async def play() -> None:
            async with node(head_s=0.2) as n:
                reader, writer = await n.connect()
                writer.write(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
                assert b" 200 " in await reader.readline()
                writer.write(b"GET /hea")
                started = time.monotonic()
                with pytest.raises(ConnectionResetError):
                    while await asyncio.wait_for(reader.read(1000), 5):
                        pass
                    raise ConnectionResetError  # a clean close is as good
                assert time.monotonic() - started < 2
                writer.close()

        asyncio.run(play())

    def test_a_slow_body_is_dropped_and_others_go_on(self) -> None:
        async def play() -> None:
            async with node(SMALL) as n:
                reader, writer = await n.connect()
                writer.write(head(BODY, "content-length: 19") + BODY[:3])
                assert (await n.post(BODY)).status_code == 202
                assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
                writer.close()

        asyncio.run(play())

    def test_connections_are_bounded_idle_ones_too(self) -> None:
        async def play() -> None:
            async with node(most=3) as n:
                idle = [await n.connect() for _ in range(3)]
                await until(lambda: True)
                assert b" 503 " in await n.raw(b"")
                for _, writer in idle:
                    writer.close()

                async def served() -> bool:
                    return b" 200 " in await n.raw(
                        b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
                    )

                for _ in range(100):
                    if await served():
                        break
                    await asyncio.sleep(0.02)
                else:
                    pytest.fail("the places were never given back")

        asyncio.run(play())


class TestStop:
    """C35, the exit."""

    @pytest.mark.field("C35")
    def test_open_connections_do_not_hold_it_up(self) -> None:
        async def play() -> None:
            async with node() as n:
                assert (await n.client.get("/health")).status_code == 200  # stays, keep-alive
                _idle = await n.connect()
                _, half = await n.connect()
                half.write(b"POST /webhooks/github HTTP/1.1\r\nho")
                _, hanging = await n.connect()
                hanging.write(head(BODY, "content-length: 500") + BODY)
                await n.client.get("/health")
                started = time.monotonic()
                await n.server.stop(0.3)
                assert time.monotonic() - started < 1.5
                assert n.edge.accepted == []
                with pytest.raises(OSError):
                    await n.connect()
                for writer in (_idle[1], half, hanging):
                    writer.close()

        asyncio.run(play())

    @pytest.mark.field("C35")
    def test_a_request_under_way_is_answered(self) -> None:
        async def play() -> None:
            async with node() as n:
                n.edge.gate.clear()
                request = asyncio.create_task(n.post(BODY))
                await until(lambda: n.edge.waiting == 1)
                stop = asyncio.create_task(n.server.stop(5))
                await asyncio.sleep(0.05)
                assert not stop.done()
                n.edge.gate.set()
                assert (await request).status_code == 202
                await asyncio.wait_for(stop, 1)

        asyncio.run(play())

    def test_a_request_that_does_not_end_is_cut_off(self) -> None:
        async def play() -> None:
            async with node() as n:
                n.edge.gate.clear()
                request = asyncio.create_task(n.post(BODY))
                await until(lambda: n.edge.waiting == 1)
                started = time.monotonic()
                await n.server.stop(0.1)
                assert time.monotonic() - started < 3
                await asyncio.wait({request})
                assert request.exception() is not None
                await n.server.stop(0.1)  # again: nothing

        asyncio.run(play())


class TestStart:
    def test_a_port_in_use_is_refused_with_the_way_out(self) -> None:
        async def play() -> None:
            async with node() as n:
                port = n.server.port
                with pytest.raises(NodeRefused) as refused:
                    await WebServer().start(make_app(n.edge), port=port)
                assert str(port) in str(refused.value) and "--port" in str(refused.value)

        asyncio.run(play())

    @pytest.mark.parametrize(
        ("host", "port"), [("no.such.host.invalid", 0), ("127.0.0.1", 70_000), ("192.0.2.1", 0)]
    )
    def test_an_address_that_cannot_be_had_is_refused(self, host: str, port: int) -> None:
        async def play() -> None:
            async with node() as n:
                with pytest.raises(NodeRefused, match="cannot listen on"):
                    await WebServer().start(make_app(n.edge), host, port)

        asyncio.run(play())

    def test_the_port_is_free_again_after_the_stop(self) -> None:
        async def play() -> None:
            async with node() as n:
                port = n.server.port
                await n.client.get("/health")
                await n.server.stop(0.1)
                again = WebServer()
                await again.start(make_app(n.edge), "localhost", port)
                assert again.port == port
                await again.stop(0.1)

        asyncio.run(play())

    def test_the_signals_of_the_process_are_left_alone(self) -> None:
        import signal

        async def play() -> None:
            before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
            async with node():
                after = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
                assert after == before

        asyncio.run(play())


def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    async def play() -> None:
        async with node() as n:
            for _ in range(20):
                _, writer = await n.connect()
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                writer.write(head(BODY, "content-length: 19") + BODY[:5])
                await writer.drain()
                writer.transport.abort()
            response = await n.client.post("/webhooks/github", content=BODY, headers=signed(BODY))
            assert response.status_code == 202
            assert len(n.edge.accepted) == 1

    asyncio.run(play())
