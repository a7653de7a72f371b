"""Every answer is JSON; every refusal is `{"error": code, "message": sentence}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from actors.ports import BrokerError, TooLarge
from crewlet.errors import CrewletError

log = structlog.get_logger()

RETRY_AFTER_S: Final = 2

_ALWAYS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class Refused(Exception):
    """A request that gets `status`; the message is for whoever sent it."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


def answer(status: int, content: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(content),
        status_code=status,
        headers={**_ALWAYS, **(headers or {})},
        media_type="application/json",
    )


def empty() -> Response:
    """A 200 without a word: some vendors show people whatever they are answered."""
    return Response(status_code=200, headers=dict(_ALWAYS))


def refusal(refused: Refused) -> Response:
    content = {"error": refused.code, "message": str(refused)}
    return answer(refused.status, content, refused.headers)


def busy(status: int, code: str, message: str) -> Refused:
    """Try again in a moment: 429 or 503 with Retry-After."""
    return Refused(status, code, message, {"retry-after": str(RETRY_AFTER_S)})


def refused_by(error: Exception) -> Refused:
    """What the node's own error means to the sender. Nothing of an unforeseen one gets out."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, TooLarge):
        return Refused(413, "too_large", "the event built from this delivery is too large")
    if isinstance(error, BrokerError | TimeoutError | ConnectionError):
        log.warning("webhook_not_published", error=type(error).__name__, detail=str(error))
        return busy(503, "unavailable", "the broker does not answer; sending it again is safe")
    if isinstance(error, CrewletError) and error.blame != "caller":
        log.warning("webhook_not_published", error=error.code, detail=str(error))
        return busy(503, error.code, "it is not known to be stored; sending it again is safe")
    if isinstance(error, CrewletError):
        return Refused(400, error.code, str(error))
    log.error("web_request_failed", exc_info=error)
    return Refused(500, "internal", "the node failed on this request; its log says why")


async def on_http_exception(request: Request, error: Exception) -> Response:
    """The router's own refusals: no such path, no such method."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http")
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    return refusal(Refused(error.status_code, code, message, error.headers))


async def on_error(request: Request, error: Exception) -> Response:
    return refusal(refused_by(error))
