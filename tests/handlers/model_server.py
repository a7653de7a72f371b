"""A small server of our own that speaks chat completions, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Json = dict[str, Any]
Answer = Callable[[Json], Response]


def completion(message: Json, finish_reason: str = "stop") -> Response:
    body = {"id": "c-1", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    ]}  # fmt: skip
    return Response(json.dumps(body), media_type="application/json")


def text(content: str) -> Response:
    return completion({"content": content})


def calls(*made: tuple[str, object]) -> Response:
    """Calls of tools; arguments that are no text are written as JSON."""
    tool_calls = [
        {
            "id": f"call-{n}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for n, (name, given) in enumerate(made)
    ]
    return completion({"content": None, "tool_calls": tool_calls}, "tool_calls")


def status(code: int, message: str = "", **headers: str) -> Response:
    body = json.dumps({"error": {"message": message, "type": "t"}}) if message else ""
    return Response(body, code, {name.replace("_", "-"): value for name, value in headers.items()})


class Models:
    """`answers` are given one after the other, the last one for ever. `seen` is what was asked,
    `keys` the authorization that came with it."""

    def __init__(self, *answers: Response | Answer) -> None:
        self.answers = list(answers)
        self.seen: list[Json] = []
        self.keys: list[str] = []
        self.models = Response('{"data": []}')
        self.hang = False
        self.url = ""

    async def chat(self, request: Request) -> Response:
        self.keys.append(request.headers.get("authorization", ""))
        self.seen.append(json.loads(await request.body()))
        if self.hang:
            await asyncio.sleep(60)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Response) else answer(self.seen[-1])

    async def list(self, request: Request) -> Response:
        return self.models

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Models]:
        """On a port of its own, at `url`."""
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.list),
            ]
        )
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        served = asyncio.ensure_future(server.serve([listener]))
        try:
            yield self
        finally:
            server.force_exit = server.should_exit = True
            await served
            listener.close()


@asynccontextmanager
async def raw_server(data: bytes) -> AsyncIterator[str]:
    """One that answers each connection with these bytes and cuts it; its base URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.transport.abort() if not data else writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
