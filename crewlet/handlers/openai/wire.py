"""What goes over the wire to an endpoint and comes back, and what an error status means.

Only what is needed is read: vendors add keys of their own. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from crewlet.handlers.lines import printable
from crewlet.turn import Nak, Unavailable

Json: TypeAlias = dict[str, Any]

MAX_MESSAGE: Final = 200
"""Characters of a vendor's message that a reason quotes."""

RETRY_STATUS: Final = frozenset({408, 425, 429})
"""Beside 5xx: the server gave up waiting, or wants it later. The mail is not to blame."""

RETRY_AFTER_S: Final = 5.0
"""Where the endpoint does not say when."""


class Function(Struct, frozen=True):
    """`arguments` is JSON in a string; some servers leave it an object."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class ToolCall(Struct, frozen=True):
    """One call that the model wants made. Some servers give it no id."""

    function: Function
    id: str = ""


class Message(Struct, frozen=True):
    """What the model said: text, calls of tools, or that it declines."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None


class Choice(Struct, frozen=True):
    """`finish_reason` is stop, tool_calls, length or content_filter."""

    message: Message
    finish_reason: str | None = None


class Completion(Struct, frozen=True):
    """An answer; only its first choice is asked for."""

    choices: tuple[Choice, ...]


def read_completion(body: bytes) -> Choice | Nak:
    """The choice of a good answer, or what is wrong with it."""
    try:
        choices = msgspec.json.decode(body, type=Completion).choices
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Nak(f"the endpoint's answer is no chat completion: {cut(str(error))}")
    return choices[0] if choices else Nak("the endpoint's answer holds no choice")


def refusal(choice: Choice) -> str:
    """Why the model declines; empty where it does not."""
    if choice.message.refusal:
        return f"the model declines: {cut(choice.message.refusal)}"
    if choice.finish_reason == "content_filter":
        return "the model declines: its content filter stopped the answer"
    return ""


def said(message: Message) -> Json:
    """The model's message, to be sent back with what its calls gave."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": text_of(call.function)},
        }
        for call in message.tool_calls or ()
    ]
    return {"role": "assistant", "content": message.content or "", "tool_calls": calls}


def text_of(function: Function) -> str:
    """The arguments as the JSON text that they should be."""
    if isinstance(function.arguments, str):
        return function.arguments
    return msgspec.json.encode(function.arguments).decode()


def tool_result(call: ToolCall, text: str) -> Json:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


# -- errors ---------------------------------------------------------------------------


def trouble(
    status: int, headers: Mapping[str, str], body: bytes, *, now: datetime
) -> Unavailable | Nak:
    """What an answer that is no 200 means: that nobody is there, or that this is not taken."""
    message = vendor_message(body)
    reason = f"HTTP {status} from the endpoint" + (f": {message}" if message else "")
    if 300 <= status < 400:
        return Nak(f"HTTP {status} from the endpoint: it is elsewhere; correct `base_url`")
    if status >= 500 or status in RETRY_STATUS:
        wait_s = retry_after_s(headers.get("retry-after", ""), now)
        return Unavailable(reason, RETRY_AFTER_S if wait_s is None else wait_s)
    return Nak(reason)


def retry_after_s(value: str, now: datetime) -> float | None:
    """Seconds until `Retry-After`, which is seconds or a date; None where it is neither."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def vendor_message(body: bytes) -> str:
    """The sentence of an error body, whatever shape the vendor gives it; cut."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return cut(body.decode("utf-8", "replace")) if body[:1] not in (b"<", b"") else ""
    for key in ("error", "message", "detail"):
        while isinstance(found, dict) and key in found:
            found = found[key]
    return cut(found) if isinstance(found, str) else ""


def cut(text: str) -> str:
    """On one line, harmless, and not longer than a reason should be."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
