"""From what a handler said to an outcome: bounded, and always text that JSON can carry."""

from __future__ import annotations

import math
from typing import Final, TypeAlias, cast, get_args

import msgspec
from msgspec import structs

from crewlet.errors import AskRefused
from crewlet.turn import Abandon, Ack, Answered, Defer, Nak, Outcome, Suspend, Unavailable

MAX_REASON: Final = 500
"""Characters of a reason: it goes into events, logs and dead letters."""

MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Bytes of an answer: the event that carries it must stay below the largest event."""

MAX_SHOWN: Final = 200
"""Messages that one turn may say it was shown: their rows are written with the turn's own, at once.
What is beyond is still owed its turn."""

MAX_IDENTITY: Final = 500
"""Characters of a message's identity."""

CUT: Final = " [cut]"

MAX_RUN_ID: Final = 200
"""Characters of a run's id: operators type it."""


class TimedOut(Nak, frozen=True, tag="timed_out"):
    """The engine's own: the turn was not over in time. No handler says it."""


ACCEPTED: Final = "None, text or one of the outcomes of crewlet.turn"
NO_RUN_ID: Final = f"the handler's Suspend needs a run_id: 1 to {MAX_RUN_ID} printable characters"


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
        case Answered():
            return _shown(value)
        case TimedOut():
            return value
        case Nak(reason=str() as reason):
            return nak(reason)
        case Abandon(reason=str() as reason):
            return Abandon(reason=reason_of(reason))
        case Defer(reason=str() as reason):
            return _at_its_time(Defer, reason, value.retry_after_s)
        case Unavailable(reason=str() as reason):
            return _at_its_time(Unavailable, reason, value.retry_after_s)
        case Suspend(run_id=str() as run_id) if is_run_id(run_id):
            return value
        case Suspend():
            return nak(NO_RUN_ID)
        case Ack() | Nak() | Defer() | Unavailable() | Abandon():
            return nak(f"the handler's {type(value).__name__} does not hold text")
        case _:
            return nak(f"the handler returned {type(value).__name__}, not {ACCEPTED}")


def answered(text: str) -> Ack:
    """An Ack with at most MAX_ANSWER_BYTES of `text`."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_ANSWER_BYTES:
        data = data[: MAX_ANSWER_BYTES - len(CUT)] + CUT.encode()
    return Ack(answer=data.decode("utf-8", "ignore"))


def is_run_id(text: str) -> bool:
    """One line that can be typed, and that JSON can carry."""
    return 0 < len(text) <= MAX_RUN_ID and text.isprintable() and text == text.strip()


def _shown(value: Answered) -> Outcome:
    """A list is fine, a text is not: it would be a list of letters."""
    shown, text = cast(object, value.shown), cast(object, value.answer)
    if not isinstance(shown, tuple | list) or not all(isinstance(one, str) for one in shown):
        return nak("the handler's Answered has `shown` that is no list of messages' identities")
    if text is not None and not isinstance(text, str):
        return nak("the handler's Answered does not hold text")
    answer = None if text is None else answered(text).answer
    kept = (reason_of(one) for one in shown if 0 < len(one) <= MAX_IDENTITY)
    return Answered(answer=answer, shown=tuple(dict.fromkeys(kept))[:MAX_SHOWN])


def nak(reason: str) -> Nak:
    return Nak(reason=reason_of(reason))


def timed_out(timeout_s: float) -> TimedOut:
    """After so many seconds."""
    return TimedOut(reason=f"timeout after {timeout_s:g} s")


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


def said(text: str) -> Ack:
    """What a command printed: an answer, whatever it looks like."""
    return answered(text) if text else Ack()


def written(data: bytes, printed: str) -> Outcome:
    """What a command wrote into its outcome file: one JSON object whose `type` is the name of an
    outcome (`{"type": "unavailable", "reason": "no quota", "retry_after_s": 60}`); anything else
    is a Nak. Where it says that the turn is done, and not with what answer, that was `printed`."""
    try:
        outcome = msgspec.json.decode(data, type=_Said)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return nak(f"the outcome that the command wrote does not fit: {error} ({_ONE_OF})")
    if isinstance(outcome, Ack | Answered) and outcome.answer is None:
        outcome = structs.replace(outcome, answer=said(printed).answer)
    return outcome_of(outcome)


_Said: TypeAlias = Ack | Answered | Nak | Defer | Abandon | Suspend | Unavailable
_ONE_OF: Final = "one JSON object, `type` one of " + ", ".join(
    sorted(str(each.__struct_config__.tag) for each in get_args(_Said))
)


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
