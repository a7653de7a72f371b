"""A subscription of a wire, and how what it delivers is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog
from nats.aio.msg import Msg

log = structlog.get_logger(__name__)

Deliver = Callable[[Msg], None]


class Route:
    """A subscription that outlives reconnects: `deliver` is called inside the read loop."""

    __slots__ = ("deliver", "open", "sid", "subject")

    def __init__(self, subject: str, deliver: Deliver) -> None:
        self.subject = subject
        self.deliver = deliver
        self.sid = 0
        self.open = True

    def put_nowait(self, message: Msg) -> None:
        """Where nats-py would queue. An exception here would end its read loop for good."""
        try:
            self.deliver(message)
        except Exception:
            log.exception("broker_delivery_failed", subject=message.subject)


def status(message: Msg) -> str:
    """The status of a message without a body (`404`, `503`); empty for a real one."""
    if message.data or not message.headers:
        return ""
    return message.headers.get("Status", "")


def header_block(headers: Mapping[str, str]) -> bytes:
    lines = ["NATS/1.0"]
    for name, value in headers.items():
        if any(mark in value for mark in "\r\n\0"):
            raise ValueError(f"a line break in the header {name}")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode()
