"""The turn with a model: it is told what came in, and may ask a colleague or reply.

Each round is one answer of the model. A turn ends with a reply, with a question to a colleague,
or with whatever kept the model from either.
"""

from __future__ import annotations

import hashlib

import httpx
import msgspec

from crewlet.company.endpoint import Endpoint
from crewlet.errors import AskRefused
from crewlet.handlers.openai.client import Client
from crewlet.handlers.openai.prompt import opening
from crewlet.handlers.openai.tools import NAMES, Ask, Reply, tools_for
from crewlet.handlers.openai.wire import (
    Choice,
    Json,
    ToolCall,
    cut,
    refusal,
    said,
    text_of,
    tool_result,
)
from crewlet.turn import Abandon, Ack, Nak, Outcome, Turn, Unavailable


class OpenAi:
    """A handler for one endpoint; see `crewlet.handlers.Handler`. Timeouts are the caller's."""

    def __init__(
        self, endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._endpoint = endpoint
        self.provider = _provider(endpoint)
        self._client = Client(endpoint, transport)

    async def __call__(self, turn: Turn) -> Outcome:
        colleagues = turn.colleagues()
        messages, tools = opening(turn, self._endpoint.system, colleagues), tools_for(colleagues)
        async with self._client.http() as http:
            for _ in range(self._endpoint.rounds):
                turn.checkpoint()
                found = await self._client.complete(http, messages, tools)
                if not isinstance(found, Choice):
                    return found
                ended = await _round(turn, found, messages)
                if ended is not None:
                    return ended
        return Nak(f"the model made no reply in {self._endpoint.rounds} rounds")

    async def available(self) -> Unavailable | None:
        """Whether the endpoint answers again, without a turn."""
        async with self._client.http() as http:
            return await self._client.available(http)


def _provider(endpoint: Endpoint) -> str:
    """Two seats have the same where they ask one model, and in one name: a key may be out of
    credit while another is not. The key itself stands in no name."""
    key = endpoint.key.reveal() if endpoint.key is not None else ""
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{endpoint.base_url} {endpoint.model} {digest}"


async def _round(turn: Turn, choice: Choice, messages: list[Json]) -> Outcome | None:
    """What the model's answer makes of the turn; None where it goes on, with what its calls gave
    in `messages`."""
    if reason := refusal(choice):
        return Abandon(reason)  # it would decline 24 more times
    calls = choice.message.tool_calls
    if not calls:
        text = (choice.message.content or "").strip()
        return Ack(text) if text else Nak("the model said nothing")
    messages.append(said(choice.message))
    for call in calls:
        result = await _called(turn, call)
        if not isinstance(result, str):
            return result
        messages.append(tool_result(call, result))
    return None


async def _called(turn: Turn, call: ToolCall) -> Ack | str:
    """The end of the turn, or what the model is told instead."""
    name, arguments = call.function.name, text_of(call.function)
    try:
        match name:
            case "reply":
                text = msgspec.json.decode(arguments, type=Reply).text.strip()
                return Ack(text) if text else "the text of a reply is never empty"
            case "a2a_ask":
                asked = msgspec.json.decode(arguments, type=Ask)
                return await turn.ask(asked.handle, asked.brief)
    except AskRefused as error:
        return f"refused: {error}"
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return f"the arguments of {name} do not fit: {cut(str(error))}"
    return f"there is no tool {cut(name)!r}; there are: {NAMES}"
