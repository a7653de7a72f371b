"""A subscription of a wire, and how what it delivers is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
from msgspec import Struct
from nats.aio.msg import Msg

log = structlog.get_logger(__name__)

NO_HEADERS: Final[Mapping[str, str]] = {}

_BLANK: Final = " \t\r\n\v\f"
_VERSION: Final = len("NATS/1.0")


class Message(Struct, frozen=True):
    """What the server sent. `reply` is empty where no answer is wanted; a status of the server's
    own stands among the headers, as `Status` and `Description`."""

    subject: str
    reply: str
    data: bytes
    headers: Mapping[str, str] = NO_HEADERS


Deliver = Callable[[Message], None]


class Route:
    """A subscription that outlives reconnects: `deliver` is called inside the read loop."""

    __slots__ = ("deliver", "open", "sid", "subject")

    def __init__(self, subject: str, deliver: Deliver) -> None:
        self.subject = subject
        self.deliver = deliver
        self.sid = 0
        self.open = True

    def take(self, message: Message) -> None:
        """An exception here would end nats-py's read loop for good."""
        try:
            self.deliver(message)
        except Exception:
            log.exception("broker_delivery_failed", subject=message.subject)

    def put_nowait(self, message: Msg) -> None:
        """Where nats-py would queue: what came through its own parser."""
        headers = message.headers or NO_HEADERS
        self.take(Message(message.subject, message.reply, message.data, headers))


def status(message: Message) -> str:
    """The status of a message without a body (`404`, `503`); empty for a real one."""
    return "" if message.data else message.headers.get("Status", "")


def read_headers(block: bytes) -> Mapping[str, str]:
    """The headers of a message, as nats-py reads them: the last of a name counts, and a line
    that is none is passed over."""
    first, *lines = block.decode("utf-8", "replace").split("\r\n")
    headers = {}
    if first := first[_VERSION:].strip(_BLANK):
        code, _, words = first.partition(" ")
        if code.isdigit():
            headers["Status"] = code
        if words:
            headers["Description"] = words
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip(_BLANK)
        if colon and name.isascii() and " " not in name:
            headers[name] = value.strip(_BLANK)
    return headers


def header_block(headers: Mapping[str, str]) -> bytes:
    lines = ["NATS/1.0"]
    for name, value in headers.items():
        if any(mark in value for mark in "\r\n\0"):
            raise ValueError(f"a line break in the header {name}")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode()
