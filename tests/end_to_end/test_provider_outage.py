"""A real node, an embedded broker and a model on a real port that is away for some seconds."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.harness import Company, until
from tests.handlers.model_server import Models, calls, status

KEY = "sk-only-for-tests-Zw41"

COMPANY = """
name: Company T
handler:
  timeout_s: 60
  openai: {model: m-1, base_url: "%s", key: "${T_KEY}", request_timeout_s: 10}
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
  - {name: Qa, handle: qa}
"""


@contextmanager
def served(models: Models) -> Iterator[Models]:
    """The endpoint, on a loop of its own beside the test."""
    up: Future[None] = Future()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def main() -> None:
        async with models.serving():
            up.set_result(None)
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    up.result(10)
    try:
        yield models
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


@pytest.mark.field("C08")
@pytest.mark.certifies(145, 170, 275)
def test_an_outage_of_a_real_endpoint_is_waited_out(tmp_path: Path) -> None:
    away = status(503, "no capacity")
    models = Models(away)
    models.models = away
    with served(models):
        company = Company(tmp_path, COMPANY % models.url)
        node = company.start(env={"T_KEY": KEY, "NO_PROXY": "127.0.0.1"})
        try:
            sent = [node.send(seat, f"task {n}") for n in range(4) for seat in ("dev", "ops", "qa")]
            held = until(lambda: [r for r in node.call("seats") if "provider" in r["state"]], 30)
            assert "no capacity" in held[0]["state"]
            first = node.call("why", handle=held[0]["handle"])[0]
            assert first["code"] == "provider" and "next try" in first["text"]
            models.models = status(429, "slower", retry_after="2")
            until(lambda: "slower" in node.call("why", handle=held[0]["handle"])[0]["text"], 30)
            models.answers = [calls(("reply", {"text": "seen to"}))]
            models.models = calls()
            until(lambda: len(worked(node.events("agent_turn_completed"))) == len(sent), 60)
            assert Counter(worked(node.events("agent_turn_completed"))) == Counter(sent)
            assert node.call("dlq.list") == []
            seats = [event["agent_role"] for event in node.events("llm_unavailable")]
            assert sorted(seats) == ["dev", "ops", "qa"]
            assert set(models.keys) == {f"Bearer {KEY}"}
            everything = company.log.read_text() + repr(node.events())
            assert KEY not in everything
        finally:
            node.end()


def worked(completed: list[dict[str, object]]) -> list[str]:
    """What acked turns were for."""
    found: list[str] = []
    for event in completed:
        if event["outcome"] == "ack":
            triggers = event["triggers"]
            assert isinstance(triggers, list)
            found += triggers
    return found
