"""One request to an endpoint: bounded in time and size, and always with an answer of ours.

Nothing that httpx raises goes further: its texts may quote what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import httpx
import msgspec
from msgspec import structs

from crewlet.company.endpoint import Endpoint
from crewlet.handlers.openai.wire import Choice, Json, read_completion, trouble
from crewlet.turn import Nak, Unavailable

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Four times the longest answer of a turn: JSON escapes some letters."""

MAX_ERROR_BYTES: Final = 64 * 1024

PROBE_S: Final = 20.0


class _TooLarge(Exception):
    pass


def _now() -> datetime:
    return datetime.now(UTC)


class Client:
    """Asks one endpoint; `http` is open for as long as one turn."""

    def __init__(
        self,
        endpoint: Endpoint,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._now = now
        self._tls = httpx.create_ssl_context()  # once: it reads a whole file of certificates
        self._key = endpoint.key.reveal() if endpoint.key is not None else ""

    def http(self) -> httpx.AsyncClient:
        """Connections for one turn. A redirect is not followed: the key would go along."""
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return httpx.AsyncClient(
            headers=headers,
            timeout=self._endpoint.request_timeout_s,
            transport=self._transport,
            follow_redirects=False,
            verify=self._tls,
        )

    async def complete(
        self, http: httpx.AsyncClient, messages: Sequence[Json], tools: Sequence[Json]
    ) -> Choice | Nak | Unavailable:
        """The model's next answer, or what became of it."""
        asked: Json = {"model": self._endpoint.model, "messages": messages, "tools": tools}
        if self._endpoint.temperature is not None:
            asked["temperature"] = self._endpoint.temperature
        content = msgspec.json.encode(asked)
        within_s = self._endpoint.request_timeout_s
        return self._kept(await self._ask(http, "POST", "/chat/completions", content, within_s))

    async def available(self, http: httpx.AsyncClient) -> Unavailable | None:
        """What the list of models says, which costs nothing: an endpoint that has no such list
        is not told to be away by that."""
        within_s = min(PROBE_S, self._endpoint.request_timeout_s)
        found = self._kept(await self._ask(http, "GET", "/models", None, within_s))
        return found if isinstance(found, Unavailable) else None

    async def _ask(
        self,
        http: httpx.AsyncClient,
        method: str,
        path: str,
        content: bytes | None,
        within_s: float,
    ) -> Choice | Nak | Unavailable:
        url = self._endpoint.base_url.rstrip("/") + path
        headers = {"Content-Type": "application/json"} if content is not None else None
        try:
            async with asyncio.timeout(within_s):
                async with http.stream(method, url, content=content, headers=headers) as response:
                    return await self._answer(response)
        except (TimeoutError, httpx.TimeoutException):
            return Unavailable(f"the endpoint did not answer within {within_s:g} s")
        except _TooLarge:
            return Nak(f"the endpoint's answer is longer than {MAX_ANSWER_BYTES} bytes")
        except (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError, OSError) as error:
            return Unavailable(f"the endpoint cannot be reached: {type(error).__name__}")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return Nak(f"the endpoint cannot be asked: {type(error).__name__}")

    async def _answer(self, response: httpx.Response) -> Choice | Nak | Unavailable:
        if response.status_code == 200:
            return read_completion(await _body(response, MAX_ANSWER_BYTES, whole=True))
        body = await _body(response, MAX_ERROR_BYTES, whole=False)
        return trouble(response.status_code, response.headers, body, now=self._now())

    def _kept(self, found: Choice | Nak | Unavailable) -> Choice | Nak | Unavailable:
        """A vendor may quote the key that it did not take."""
        if isinstance(found, Choice) or not self._key:
            return found
        return structs.replace(found, reason=found.reason.replace(self._key, "***"))


async def _body(response: httpx.Response, most: int, *, whole: bool) -> bytes:
    """At most `most` bytes; _TooLarge where it has to be whole and is not."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk[: most + 1 - len(body)]
        if len(body) > most:
            if whole:
                raise _TooLarge
            break
    return bytes(body[:most])
