"""`POST /webhooks/VENDOR`: bounded, verified, readable, durably published, and only then 202.

A vendor may want another answer, and one may ask the edge itself: `crewlet.sources.reply`.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from opentelemetry import trace as otel
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crewlet import sources
from crewlet.events import Trace
from crewlet.sources.edge_facts import PATH_EVENT, URL_PROOF
from crewlet.sources.generic_rule import PREFIX
from crewlet.web.answers import Refused, answer, busy, empty, refusal, refused_by
from crewlet.web.body import Load
from crewlet.web.edge import Edge, Limits

log = structlog.get_logger()

MAX_DELIVERY_KEY: Final = 200

_tracer: Final = otel.get_tracer("crewlet.web")
_propagator: Final = TraceContextTextMapPropagator()


class Webhooks:
    """The endpoint. It keeps nothing between requests but the count of what is under way."""

    def __init__(self, edge: Edge, limits: Limits) -> None:
        self._edge = edge
        self._load = Load(limits)

    async def __call__(self, request: Request) -> Response:
        vendor = request.path_params["vendor"]
        context = _propagator.extract(dict(request.headers))
        with _tracer.start_as_current_span("webhook", context=context) as span:
            span.set_attribute("crewlet.vendor", vendor)
            response = await self._answer(request, vendor, _trace(request, span))
            span.set_attribute("http.response.status_code", response.status_code)
            return response

    async def _answer(self, request: Request, vendor: str, trace: Trace) -> Response:
        try:
            return await self._receive(request, vendor, trace)
        except ClientDisconnect:
            return refusal(Refused(400, "disconnected", "the body ended too early"))
        except asyncio.CancelledError:  # the server hangs up; this is the end of the task
            log.warning("webhook_interrupted", vendor=vendor)
            return refusal(busy(503, "stopping", "the node stops; sending it again is safe"))
        except Exception as error:
            refused = refused_by(error)
            log.info("webhook_refused", vendor=vendor, status=refused.status, code=refused.code)
            return refusal(refused)

    async def _receive(self, request: Request, vendor: str, trace: Trace) -> Response:
        event = request.path_params.get("event", "")
        if vendor == "generic" and event:
            vendor, event = PREFIX + event, ""
        secret = self._edge.secret(vendor)
        if secret is None or (event and PATH_EVENT not in sources.kept_headers(vendor)):
            raise Refused(404, "not_found", f"this company has no webhook of {vendor[:80]!r}")
        headers = headers_of(request) | {PATH_EVENT: event, URL_PROOF: _token(request)}
        headers |= self._edge.facts(vendor)
        async with self._load.body(request) as body:
            if not sources.verify(vendor, headers, body, secret):
                raise Refused(401, "signature", "the signature is missing or does not match")
            payload = sources.decode(vendor, headers, body)  # Unreadable is 400
            reply = sources.reply(vendor, payload)
            if reply is not None and not reply.publish:
                return _replied(reply)
            async with self._load.publish():
                new = await self._edge.accept(vendor, headers, body, trace)
        key = sources.key_of(vendor, headers, payload)[:MAX_DELIVERY_KEY]
        log.debug("webhook_accepted", vendor=vendor, delivery=key, duplicate=not new)
        if reply is not None:
            return _replied(reply)
        return answer(202, {"status": "accepted", "delivery": key})


def _replied(reply: sources.Reply) -> Response:
    """What the vendor wants in place of our own answer."""
    return empty() if reply.content is None else answer(200, reply.content)


def headers_of(request: Request) -> dict[str, str]:
    """Lower-case names; a repeated header's values joined, so that none of two is chosen."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _token(request: Request) -> str:
    """The URL's `token`, for vendors that sign nothing. It is kept nowhere; of two, neither."""
    stated = request.query_params.getlist("token")
    return stated[0] if len(stated) == 1 else ""


def _trace(request: Request, span: otel.Span) -> Trace:
    """The span's own place where one is recorded, else a child of what the sender stated."""
    joined = Trace.joined(request.headers.get("traceparent"))
    context = span.get_span_context()
    if not span.is_recording() or not context.is_valid:
        return joined
    return Trace(
        trace_id=otel.format_trace_id(context.trace_id),
        span_id=otel.format_span_id(context.span_id),
        parent_span_id=joined.parent_span_id,
    )
