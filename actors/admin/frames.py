"""What travels over the admin socket: one JSON object a line, in both directions.

A client sends one `Request` line and keeps its side open. The node answers with any number
of `{"row": ...}` lines and then exactly one of `{"end": {...}}` or `{"error": {...}}`.
A connection that closes without either of these means that the node died.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

MAX_REQUEST_BYTES: Final = 9 * 1024 * 1024
"""An event is at most 8 MiB (docs/contract.md 49); the rest is the JSON around it."""

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""The longest answer line that a client takes: a dead letter of 8 MiB, escaped, fits."""


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """The one line that a client sends. `args` stays undecoded until the verb is known."""

    verb: str
    args: Raw = field(default_factory=lambda: Raw(b"{}"))


class End(Struct, frozen=True):
    """The last line of an answer that came through. `reason` is `stopping` for a follower
    whose node stopped, empty otherwise."""

    code: int = 0
    reason: str = ""


class Failure(Struct, frozen=True):
    """The last line of an answer that did not. `code` is stable, `message` is a sentence,
    `exit` is the exit code for a command line: 1 failed, 2 usage, 3 refused, 4 partial."""

    code: str
    message: str
    exit: int = 1


class Frame(Struct, frozen=True):
    """Any line of an answer: exactly one of the three is set."""

    row: Raw | UnsetType = UNSET
    end: End | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


_encoder: Final = msgspec.json.Encoder()
_request: Final = msgspec.json.Decoder(Request)
_frame: Final = msgspec.json.Decoder(Frame)


def encode_request(verb: str, args: object) -> bytes:
    """The request's line. Raises ValueError where it is longer than a node takes."""
    line = _encoder.encode({"verb": verb, "args": args}) + b"\n"
    if len(line) > MAX_REQUEST_BYTES:
        raise ValueError(f"the request has {len(line)} bytes, a node takes {MAX_REQUEST_BYTES}")
    return line


def decode_request(line: bytes) -> Request:
    """The inverse. Raises ValueError on anything that is no request."""
    try:
        request = _request.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a request: {error}") from None
    return request


def row_line(row: object) -> bytes:
    """One row's line. Raises TypeError on what JSON can't say."""
    return b'{"row":' + _encoder.encode(row) + b"}\n"


def end_line(end: End) -> bytes:
    return _encoder.encode({"end": end}) + b"\n"


def error_line(failure: Failure) -> bytes:
    return _encoder.encode({"error": failure}) + b"\n"


def decode_frame(line: bytes) -> Frame:
    """One line of an answer. Raises ValueError on anything else."""
    try:
        return _frame.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not an answer of a node: {error}") from None
