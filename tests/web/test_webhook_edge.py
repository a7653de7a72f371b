"""The webhook edge over a real socket: every status, and nothing published but what is signed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time

import msgspec
import pytest
from opentelemetry import trace as otel
from opentelemetry.context import Context
from web_edge import SECRET, node, parsed, signature, signed, until

from actors.ports import NotLive, TooLarge, Unavailable
from crewlet.errors import CorruptEvent, NodeRefused, PublishUnknown, StoreUnavailable
from crewlet.web import Limits

BODY = b'{"action":"opened"}'


class TestAccepted:
    @pytest.mark.certifies(131)
    def test_a_signed_delivery_is_published_as_it_came(self) -> None:
        async def play() -> None:
            async with node() as n:
                response = await n.post(BODY)
                assert response.status_code == 202
                assert parsed(response) == {"status": "accepted", "delivery": "d-1"}
                [(vendor, headers, body, _)] = n.edge.accepted
                assert (vendor, body) == ("github", BODY)
                assert headers["x-github-event"] == "issues"

        asyncio.run(play())

    def test_a_known_delivery_is_answered_like_a_new_one(self) -> None:
        async def play() -> None:
            async with node() as n:
                first, again = await n.post(BODY), await n.post(BODY)
                assert (first.status_code, again.status_code) == (202, 202)
                assert first.content == again.content

        asyncio.run(play())

    @pytest.mark.field("C31")
    @pytest.mark.parametrize(
        "body", [b"{}", b"[]", b"7", b"null", b'"text"', b'{"sender":null}', b'{"a":1,"a":2}']
    )
    def test_whatever_is_signed_and_json_is_accepted(self, body: bytes) -> None:
        async def play() -> None:
            async with node() as n:
                for event in ("ping", "no_such_event", "", "push"):
                    assert (await n.post(body, x_github_event=event)).status_code == 202

        asyncio.run(play())

    def test_a_form_is_json_in_a_field(self) -> None:
        async def play() -> None:
            form = "application/x-www-form-urlencoded"
            async with node() as n:
                body = b"payload=%7B%22a%22%3A1%7D"
                assert (await n.post(body, content_type=form)).status_code == 202
                assert (await n.post(b"other=1", content_type=form)).status_code == 400

        asyncio.run(play())

    def test_the_drain_still_takes_deliveries(self) -> None:
        async def play() -> None:
            async with node() as n:
                n.edge.draining = True
                assert (await n.post(BODY)).status_code == 202

        asyncio.run(play())


def other_digest(name: str) -> str:
    return hmac.new(SECRET, BODY, getattr(hashlib, name)).hexdigest()


class TestSignature:
    """T14."""

    @pytest.mark.certifies(131)
    @pytest.mark.field("C31")
    @pytest.mark.parametrize(
        "stated",
        [
            "",
            "sha256=",
            signature(BODY)[:-1],
            signature(BODY).upper(),
            signature(BODY)[:7] + signature(BODY)[7:].upper(),
            signature(BODY)[7:],
            "sha1=" + other_digest("sha1"),
            "sha256=" + other_digest("sha1"),
            "sha512=" + other_digest("sha512"),
            signature(BODY, b"another secret"),
            signature(BODY, b""),
            signature(BODY + b" "),
            "é" * 64,
        ],
    )
    def test_a_wrong_one_is_401_and_nothing_is_published(self, stated: str) -> None:
        async def play() -> None:
            async with node() as n:
                headers = {**signed(BODY), "x-hub-signature": "sha1=" + other_digest("sha1")}
                headers["x-hub-signature-256"] = stated
                pairs = [(k.encode(), v.encode()) for k, v in headers.items() if v]
                response = await n.client.post("/webhooks/github", content=BODY, headers=pairs)
                assert response.status_code == 401, response.text
                assert parsed(response)["error"] == "signature"
                assert SECRET.decode() not in response.text
                assert n.edge.accepted == []

        asyncio.run(play())

    def test_an_empty_secret_verifies_nothing(self) -> None:
        async def play() -> None:
            async with node() as n:
                n.edge.secrets["github"] = b""
                response = await n.post(BODY, x_hub_signature_256=signature(BODY, b""))
                assert response.status_code == 401 and n.edge.accepted == []

        asyncio.run(play())

    def test_of_two_signatures_none_is_chosen(self) -> None:
        async def play() -> None:
            async with node() as n:
                pairs = [*signed(BODY).items(), ("x-hub-signature-256", signature(BODY))]
                response = await n.client.post("/webhooks/github", content=BODY, headers=pairs)
                assert response.status_code == 401

        asyncio.run(play())

    def test_it_comes_before_the_parsing(self) -> None:
        async def play() -> None:
            async with node() as n:
                response = await n.post(b"{nonsense", x_hub_signature_256="sha256=00")
                assert response.status_code == 401

        asyncio.run(play())


class TestUnreadable:
    @pytest.mark.field("C31")
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b'{"a":1}x',
            b'"\xff"',
            b'"\\ud800"',
            b"1e400",
            b"[" * 100_000,
            b"[" * 100_000 + b"]" * 100_000,
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        ],
        ids=["empty", "cut", "more", "utf8", "surrogate", "1e400", "open", "deep", "deep-object"],
    )
    def test_it_is_400_with_a_sentence(self, body: bytes) -> None:
        async def play() -> None:
            async with node() as n:
                response = await n.post(body)
                assert response.status_code == 400, response.text
                assert parsed(response)["error"] == "unreadable" and n.edge.accepted == []

        asyncio.run(play())

    def test_a_content_type_of_another_kind_is_400(self) -> None:
        async def play() -> None:
            async with node() as n:
                response = await n.post(BODY, content_type="application/xml")
                assert response.status_code == 400
                assert "application/json" in parsed(response)["message"]

        asyncio.run(play())

    def test_a_compressed_body_is_415(self) -> None:
        async def play() -> None:
            async with node() as n:
                for encoding, status in (("gzip", 415), ("br, gzip", 415), ("identity", 202)):
                    assert (await n.post(BODY, content_encoding=encoding)).status_code == status

        asyncio.run(play())


class TestTrouble:
    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (Unavailable("gone"), 503, "unavailable"),
            (NotLive("stopped"), 503, "unavailable"),
            (PublishUnknown("m-1", "inbound", 5.0), 503, "unknown"),
            (StoreUnavailable("no answer"), 503, "store_unavailable"),
            (NodeRefused("not now"), 503, "node_refused"),
            (TimeoutError(), 503, "unavailable"),
            (ConnectionResetError(), 503, "unavailable"),
            (TooLarge("9 MiB"), 413, "too_large"),
            (CorruptEvent("odd"), 400, "corrupt_event"),
            (ZeroDivisionError("s3cret detail"), 500, "internal"),
        ],
    )
    def test_what_the_edge_raises_has_a_status(
        self, error: Exception, status: int, code: str
    ) -> None:
        async def play() -> None:
            async with node() as n:
                n.edge.error = error
                response = await n.post(BODY)
                assert (response.status_code, parsed(response)["error"]) == (status, code)
                assert ("retry-after" in response.headers) == (status == 503)
                assert "s3cret" not in response.text and "Traceback" not in response.text
                n.edge.error = None
                assert (await n.post(BODY)).status_code == 202

        asyncio.run(play())

    def test_too_many_that_wait_for_the_broker_is_429(self) -> None:
        async def play() -> None:
            async with node(Limits(publishing=2)) as n:
                n.edge.gate.clear()
                held = [asyncio.create_task(n.post(BODY)) for _ in range(2)]
                await until(lambda: n.edge.waiting == 2)
                response = await n.post(BODY)
                assert response.status_code == 429 and response.headers["retry-after"] == "2"
                n.edge.gate.set()
                assert [r.status_code for r in await asyncio.gather(*held)] == [202, 202]

        asyncio.run(play())

    def test_the_memory_of_all_bodies_is_bounded(self) -> None:
        async def play() -> None:
            body = b'"' + b"x" * 600_000 + b'"'
            async with node(Limits(buffered_bytes=1_000_000)) as n:
                n.edge.gate.clear()
                held = asyncio.create_task(n.post(body))
                await until(lambda: n.edge.waiting == 1)
                assert (await n.post(body)).status_code == 429
                n.edge.gate.set()
                assert (await held).status_code == 202
                assert (await n.post(body)).status_code == 202

        asyncio.run(play())


class TestTrace:
    @pytest.mark.certifies(201, 203)
    def test_it_joins_what_the_sender_states_and_is_never_empty(self) -> None:
        async def play() -> None:
            parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
            async with node() as n:
                await n.post(BODY, traceparent=parent)
                await n.post(BODY)
                await n.post(BODY, traceparent="00-" + "0" * 32 + "-" + "b" * 16 + "-01")
                joined, fresh, refused = (trace for _, _, _, trace in n.edge.accepted)
                assert joined.trace_id == "a" * 32 and joined.parent_span_id == "b" * 16
                assert joined.span_id not in ("", "b" * 16)
                for trace in (fresh, refused):
                    assert len(trace.trace_id) == 32 and set(trace.trace_id) != {"0"}
                    assert trace.span_id and not trace.parent_span_id
                assert fresh.trace_id != refused.trace_id

        asyncio.run(play())

    @pytest.mark.certifies(201)
    def test_a_recorded_span_is_the_event_s_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Recorded(otel.NonRecordingSpan):
            def is_recording(self) -> bool:
                return True

        class Tracer(otel.NoOpTracer):
            def start_as_current_span(self, name: str, context: Context, **_: object) -> object:  # type: ignore[override]
                parent = otel.get_current_span(context).get_span_context()
                own = otel.SpanContext(parent.trace_id, 0xC, is_remote=False)
                return otel.use_span(Recorded(own))

        monkeypatch.setattr("crewlet.web.webhooks._tracer", Tracer())

        async def play() -> None:
            async with node() as n:
                await n.post(BODY, traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
                [(_, _, _, trace)] = n.edge.accepted
                assert (trace.trace_id, trace.span_id) == ("a" * 32, "c".zfill(16))
                assert trace.parent_span_id == "b" * 16

        asyncio.run(play())


class TestRouting:
    @pytest.mark.certifies(273)
    def test_health_and_readiness(self) -> None:
        async def play() -> None:
            async with node() as n:

                async def seen() -> tuple[int, str, int]:
                    health, ready = await n.client.get("/health"), await n.client.get("/ready")
                    parsed(ready)
                    return health.status_code, parsed(health)["status"], ready.status_code

                assert await seen() == (200, "ok", 200)
                n.edge.ready = False
                assert await seen() == (200, "ok", 503)
                n.edge.ready, n.edge.draining = True, True
                assert await seen() == (200, "draining", 503)

        asyncio.run(play())

    def test_refusals_are_json_and_tell_nothing_of_the_server(self) -> None:
        async def play() -> None:
            async with node() as n:
                for method, path, status in (
                    ("GET", "/", 404),
                    ("POST", "/webhooks/gitlab", 404),
                    ("POST", "/webhooks/github/", 404),
                    ("GET", "/webhooks/github", 405),
                    ("DELETE", "/health", 405),
                    ("POST", "/%ff%00", 404),
                ):
                    response = await n.client.request(method, path)
                    assert response.status_code == status, path
                    assert set(parsed(response)) == {"error", "message"}
                    assert "server" not in response.headers
                assert n.edge.accepted == []

        asyncio.run(play())


def test_a_body_of_the_largest_kind_does_not_hold_up_the_loop() -> None:
    """A generous bound: machines that run tests are busy. It is some 20 ms on an idle core."""

    async def play() -> None:
        big = msgspec.json.encode({"items": [{"id": i, "t": "x" * 40} for i in range(90_000)]})
        assert 4_000_000 < len(big) < 6 * 1024 * 1024
        pauses: list[float] = []

        async def watch() -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                pauses.append(time.monotonic() - before)

        async with node() as n:
            watcher = asyncio.create_task(watch())
            assert (await n.post(big)).status_code == 202
            assert (await n.post(big[:-1])).status_code == 400
            watcher.cancel()
            assert n.edge.accepted[0][2] == big
        assert max(pauses) < 0.5

    asyncio.run(play())
