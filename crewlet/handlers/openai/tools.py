"""The tools that a model has in its turn: it may reply, and ask whoever there is to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from crewlet.handlers.openai.prompt import MOST
from crewlet.handlers.openai.wire import Json
from crewlet.turn import SeatView

NAMES: Final = "reply, a2a_ask"


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `reply`."""

    text: str


class Ask(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `a2a_ask`."""

    handle: str
    brief: str


def tools_for(colleagues: Sequence[SeatView]) -> list[Json]:
    """Without a colleague there is nothing to ask with. Where there are more than the model is
    told of, any handle may be said: who it is not is refused when it is asked."""
    reply = _tool("reply", "Answer what came in, and end the turn.", text=_text("The answer."))
    if not colleagues:
        return [reply]
    handle = _text("The colleague's handle.")
    if len(colleagues) <= MOST:
        handle["enum"] = [seat.handle for seat in colleagues]
    ask = _tool(
        "a2a_ask",
        "Ask a colleague, and end the turn: the answer will wake you.",
        handle=handle,
        brief=_text("All that they need to know; they see nothing else."),
    )
    return [reply, ask]


def _text(about: str) -> Json:
    return {"type": "string", "description": about}


def _tool(name: str, about: str, **parameters: Json) -> Json:
    schema = {
        "type": "object",
        "properties": parameters,
        "required": list(parameters),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": schema},
    }
