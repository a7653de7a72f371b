"""uvicorn's HTTP/1.1 protocol with the bounds that it leaves out.

uvicorn has no time limit for a request's head and none for the number of idle connections: a few
hundred sockets that send one byte a second would hold it for good.
"""

from __future__ import annotations

import asyncio
import http
import sys
from contextlib import suppress
from typing import Any, Final

import h11
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HEAD_BYTES: Final = 64 * 1024
"""The largest request head."""


class BoundedProtocol(H11Protocol):
    """Closes a connection whose next request head is not complete `head_s` seconds after its
    first byte (or after the connection was made), and answers 503 to connections above `most`."""

    def __init__(self, config: Config, state: ServerState, *, head_s: float, most: int) -> None:
        super().__init__(config, state, {})
        self._head_s = head_s
        self._most = most
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.write(_raw(503, "busy", "too many connections"))
            transport.close()
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._between_requests():
            self._arm()
        else:
            self._disarm()

    def shutdown(self) -> None:
        with suppress(h11.LocalProtocolError):
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Called within the handling of h11's error, which knows the better status."""
        error = sys.exc_info()[1]
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # whoever reads the body: it will not come
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_raw(status, "bad_request", msg))
        self.transport.close()

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _arm(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._head_s, self._late)

    def _disarm(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        self._head_timer = None
        if self._between_requests():
            self.transport.abort()


def _raw(status: int, code: str, message: str) -> bytes:
    """An answer to what is not yet, or no, request."""
    body: bytes = msgspec.json.encode({"error": code, "message": message})
    fields: dict[str, Any] = {
        "content-type": "application/json",
        "content-length": len(body),
        "connection": "close",
    }
    head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return head.encode() + b"\r\n" + body
