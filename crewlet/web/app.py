"""The routes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crewlet.web.answers import Refused, answer, on_error, on_http_exception, refusal
from crewlet.web.edge import Edge, Limits
from crewlet.web.webhooks import Webhooks

DEFAULT_LIMITS = Limits()


def make_app(edge: Edge, limits: Limits = DEFAULT_LIMITS) -> Starlette:
    """The node's web application.

    `POST /webhooks/VENDOR` (`/webhooks/VENDOR/EVENT` where a vendor names the event nowhere
    else, `/webhooks/generic/NAME` for senders of the company's own), `GET /health` (200 while
    the process serves, through a drain too) and `GET /ready` (503 before the start is complete
    and during a drain).
    """
    webhooks = Webhooks(edge, limits)

    async def webhook(request: Request) -> Response:
        return await webhooks(request)

    async def health(request: Request) -> Response:
        return answer(200, {"status": "draining" if edge.draining else "ok"})

    async def ready(request: Request) -> Response:
        if edge.draining:
            return refusal(Refused(503, "draining", "the node is on its way out"))
        if not edge.ready:
            return refusal(Refused(503, "starting", "the node has not started completely"))
        return answer(200, {"status": "ready"})

    app = Starlette(
        routes=[
            Route("/webhooks/{vendor}", webhook, methods=["POST"]),
            Route("/webhooks/{vendor}/{event}", webhook, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
            Route("/ready", ready, methods=["GET"]),
        ],
        exception_handlers={HTTPException: on_http_exception, Exception: on_error},
    )
    app.router.redirect_slashes = False
    return app
