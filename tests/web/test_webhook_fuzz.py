"""T20: whatever is sent to the edge, signed or not, is answered, and never with a 5xx."""

from __future__ import annotations

import asyncio

import httpx
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from web_edge import FakeEdge, signature, signed

from crewlet.web import make_app

REAL = msgspec.json.encode(
    {
        "action": "opened",
        "issue": {"number": 7, "title": "It breaks", "user": {"login": "ada"}, "assignees": []},
        "repository": {"full_name": "octo/works", "owner": {"login": "octo"}},
        "sender": {"login": "ada", "type": "User"},
    }
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real payload with a slice of it replaced, removed or repeated."""
    start = draw(st.integers(0, len(REAL)))
    end = draw(st.integers(start, len(REAL)))
    middle = draw(st.one_of(st.binary(max_size=20), st.just(REAL[start:end] * 2)))
    return REAL[:start] + middle + REAL[end:]


printable = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60)


@settings(max_examples=300, deadline=None)
@given(
    body=st.one_of(mutated(), st.binary(max_size=300), st.just(REAL)),
    sign=st.booleans(),
    odd=st.dictionaries(
        st.sampled_from(
            ["content-type", "x-github-event", "x-github-delivery", "traceparent", "tracestate"]
        ),
        printable,
    ),
)
def test_never_a_5xx(body: bytes, sign: bool, odd: dict[str, str]) -> None:
    async def play() -> None:
        edge = FakeEdge()
        headers = {**signed(body), **odd}
        if not sign:
            headers["x-hub-signature-256"] = signature(body, b"another")
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        transport = httpx.ASGITransport(app=make_app(edge))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            response = await client.post("/webhooks/github", content=body, headers=raw)
        assert response.status_code in ((202, 400) if sign else (401,)), response.text
        assert len(edge.accepted) == (response.status_code == 202)

    asyncio.run(play())
