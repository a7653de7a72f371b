"""From what a handler said to an outcome: bounded, and always text that JSON can carry."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import msgspec

from crewlet.errors import AskRefused
from crewlet.turn import Ack, Defer, Nak, Outcome, Unavailable

MAX_REASON: Final = 500
"""Characters of a reason: it goes into events, logs and dead letters."""

MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Bytes of an answer: the event that carries it must stay below the largest event."""

CUT: Final = " [cut]"

_ACCEPTED: Final = "None, text, Ack, Nak, Defer or Unavailable"


def outcome_of(value: object) -> Outcome:
    """What a callable returned, as an outcome; anything it may not return is a Nak."""
    match value:
        case None:
            return Ack()
        case str():
            return answered(value)
        case Ack(answer=None):
            return value
        case Ack(answer=str() as answer):
            return answered(answer)
        case Nak(reason=str() as reason):
            return nak(reason)
        case Defer(reason=str() as reason):
            return _at_its_time(Defer, reason, value.retry_after_s)
        case Unavailable(reason=str() as reason):
            return _at_its_time(Unavailable, reason, value.retry_after_s)
        case Ack() | Nak() | Defer() | Unavailable():
            return nak(f"the handler's {type(value).__name__} does not hold text")
        case _:
            return nak(f"the handler returned {type(value).__name__}, not {_ACCEPTED}")


def answered(text: str) -> Ack:
    """An Ack with at most MAX_ANSWER_BYTES of `text`."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_ANSWER_BYTES:
        data = data[: MAX_ANSWER_BYTES - len(CUT)] + CUT.encode()
    return Ack(answer=data.decode("utf-8", "ignore"))


def nak(reason: str) -> Nak:
    return Nak(reason=reason_of(reason))


def raised(error: BaseException) -> Nak:
    """`TypeName: text` of what the handler raised."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return nak(f"{name}: {text}" if text else name)


def ended_with(error: BaseException) -> Outcome:
    """What becomes of a turn whose body let this out. A question that was refused would be refused
    again, and 24 more turns would not help: the turn ends, and its answer says why."""
    return answered(str(error)) if isinstance(error, AskRefused) else raised(error)


def reason_of(text: str) -> str:
    """At most MAX_REASON characters, without surrogates that no encoder takes."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - len(CUT)] + CUT


def said(text: str) -> Outcome:
    """What a command wrote: an outcome where it is a JSON object whose `type` is the name of one
    (`{"type": "unavailable", "reason": "no quota", "retry_after_s": 60}`), else the answer."""
    if not text.startswith("{"):
        return answered(text) if text else Ack()
    try:
        written = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return answered(text)
    if written.get("type") not in _TAGS:
        return answered(text)
    try:
        return outcome_of(msgspec.convert(written, type=_Said))
    except msgspec.ValidationError as error:
        return nak(f"the command's outcome does not fit: {error}")


_Said: TypeAlias = Ack | Nak | Defer | Unavailable
_TAGS: Final = frozenset(each.__struct_config__.tag for each in (Ack, Nak, Defer, Unavailable))


def _at_its_time(
    kind: type[Defer] | type[Unavailable], reason: str, retry_after_s: object
) -> Outcome:
    if (
        isinstance(retry_after_s, bool)
        or not isinstance(retry_after_s, int | float)
        or not math.isfinite(retry_after_s)
        or retry_after_s < 0
    ):
        name = kind.__name__
        return nak(f"the handler's {name} has retry_after_s={retry_after_s!r}, not seconds")
    return kind(reason=reason_of(reason), retry_after_s=float(retry_after_s))
