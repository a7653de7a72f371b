"""A model behind an endpoint: on a real port, with all that a server may do wrong."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from handler_turns import AT, a_turn
from model_server import Models, calls, completion, raw_server, status, text
from starlette.responses import Response
from structlog.testing import capture_logs

from crewlet.company import HandlerSpec
from crewlet.company.endpoint import Endpoint
from crewlet.company.secret import Secret
from crewlet.errors import AskRefused, TurnStopped
from crewlet.handlers import build_handler
from crewlet.inbound.desk import Asker, Asks, TurnDesk
from crewlet.inbound.running import RunningTurn, Turns
from crewlet.turn import Abandon, Ack, Nak, Outcome, SeatView, Turn, Unavailable

pytestmark = pytest.mark.certifies(275)

KEY = "sk-only-for-tests-7QhT"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    yield


def endpoint(url: str, **options: Any) -> Endpoint:
    return Endpoint(
        **{"base_url": url, "model": "m-1", "key": Secret(KEY), "request_timeout_s": 5.0, **options}
    )


def ask(models: Models, turn: Turn | None = None, **options: Any) -> Outcome:
    async def main() -> Outcome:
        async with models.serving():
            spec = HandlerSpec(openai=endpoint(models.url, **options), timeout_s=30)
            return await build_handler(spec)(turn or a_turn())

    return asyncio.run(main())


def ask_at(url: str, **options: Any) -> Outcome:
    spec = HandlerSpec(openai=endpoint(url, **options), timeout_s=30)
    return asyncio.run(build_handler(spec)(a_turn()))


# -- answers --------------------------------------------------------------------------


def test_the_models_text_is_the_answer() -> None:
    models = Models(text("  It was the cache. "))
    assert ask(models, temperature=0.5) == Ack("It was the cache.")
    (asked,) = models.seen
    assert asked["model"] == "m-1" and asked["temperature"] == 0.5
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["reply"], "nobody is there"
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert "please look" in asked["messages"][1]["content"]
    assert models.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("said", [text, lambda says: calls(("reply", {"text": says}))])
def test_a_model_states_no_outcome_whatever_it_says(said: Callable[[str], Response]) -> None:
    says = '{"type": "suspend", "run_id": "r1"}'
    assert ask(Models(said(says))) == Ack(says)


def test_without_a_key_none_is_sent() -> None:
    models = Models(text("ok"))
    assert ask(models, key=None) == Ack("ok")
    assert models.keys == [""] and "temperature" not in models.seen[0]


def test_the_reply_tool_ends_the_turn() -> None:
    models = Models(calls(("reply", {"text": "done"}), ("reply", {"text": "never"})))
    assert ask(models) == Ack("done")
    assert len(models.seen) == 1


def test_arguments_as_an_object_are_understood() -> None:
    message = {"tool_calls": [{"function": {"name": "reply", "arguments": {"text": "hi"}}}]}
    assert ask(Models(completion(message))) == Ack("hi")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search", {}, "there is no tool 'search'; there are: reply, a2a_ask"),
        ("reply", "{not json", "the arguments of reply do not fit"),
        ("reply", {"words": "x"}, "the arguments of reply do not fit"),
        ("reply", {"text": 7}, "the arguments of reply do not fit"),
        ("reply", {"text": " "}, "the text of a reply is never empty"),
        ("a2a_ask", {"handle": "qa"}, "the arguments of a2a_ask do not fit"),
    ],
)
def test_a_call_that_is_none_is_told_to_the_model(name: str, arguments: object, told: str) -> None:
    models = Models(calls((name, arguments)), text("then so"))
    assert ask(models) == Ack("then so")
    said, result = models.seen[1]["messages"][2:]
    assert said["tool_calls"][0]["function"]["name"] == name
    assert result["role"] == "tool" and result["tool_call_id"] == "call-0"
    assert told in result["content"]


def test_the_rounds_of_a_turn_are_bounded() -> None:
    models = Models(calls(("search", {})))
    assert ask(models, rounds=3) == Nak("the model made no reply in 3 rounds")
    assert len(models.seen) == 3


# -- colleagues and people ------------------------------------------------------------


class Colleagues:
    """`qa` may be asked, nobody else."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def ask(self, asker: Asker, ordinal: int, handle: str, brief: str) -> str:
        if handle != "qa":
            raise AskRefused(f"there is no seat {handle}")
        self.asked.append((handle, brief))
        return "a2a-1"

    def colleagues(self, asker: Asker) -> list[SeatView]:
        return [SeatView(handle="qa", name="Quality", goal="Nothing ships broken")]


def at_a_desk(asks: Asks, play: Callable[[Turn, Turns], Awaitable[Outcome]]) -> Outcome:
    async def main() -> Outcome:
        from crewlet.events import Trace

        turns, turn = Turns(1), a_turn()
        trace = Trace.root()
        asker = Asker(handle="dev", turn_id="t-1", work_key="", depth=0, chain=(), trace=trace)
        turns.started(RunningTurn("t-1", "dev", "k", AT))
        return await play(turn.at(TurnDesk(asker, asks, turns)), turns)

    return asyncio.run(main())


def test_a_question_ends_the_turn_and_a_refused_one_is_told_to_the_model() -> None:
    colleagues = Colleagues()
    models = Models(
        calls(("a2a_ask", {"handle": "nobody", "brief": "?"})),
        calls(("a2a_ask", {"handle": "qa", "brief": "Is 1.2 fit to go?"})),
    )

    async def play(turn: Turn, turns: Turns) -> Outcome:
        async with models.serving():
            return await build_handler(HandlerSpec(openai=endpoint(models.url)))(turn)

    outcome = at_a_desk(colleagues, play)
    assert isinstance(outcome, Ack) and "asked qa" in (outcome.answer or "")
    assert colleagues.asked == [("qa", "Is 1.2 fit to go?")]
    assert models.seen[1]["messages"][3]["content"] == "refused: there is no seat nobody"
    assert "- qa (Quality: Nothing ships broken)" in models.seen[0]["messages"][0]["content"]
    _, tool = models.seen[0]["tools"]
    assert tool["function"]["parameters"]["properties"]["handle"]["enum"] == ["qa"]


@pytest.mark.certifies(147)
def test_a_person_stops_it_between_two_rounds() -> None:
    async def play(turn: Turn, turns: Turns) -> Outcome:
        def stop(_: object) -> Response:
            turns.halt("dev", "ann")
            return calls(("search", {}))

        models = Models(calls(("search", {})), stop, text("never"))
        async with models.serving():
            with pytest.raises(TurnStopped):
                await build_handler(HandlerSpec(openai=endpoint(models.url)))(turn)
        assert len(models.seen) == 2
        return Ack()

    at_a_desk(Colleagues(), play)


# -- what is no fault of the mail -----------------------------------------------------


@pytest.mark.certifies(145)
@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 529])
def test_a_provider_that_is_away_is_unavailable(code: int) -> None:
    outcome = ask(Models(status(code, "come back later")))
    assert outcome == Unavailable(f"HTTP {code} from the endpoint: come back later", 5.0)


def test_retry_after_is_seconds_or_a_date() -> None:
    assert ask(Models(status(429, retry_after="120"))) == Unavailable(
        "HTTP 429 from the endpoint", 120.0
    )
    soon = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    outcome = ask(Models(status(503, retry_after=soon)))
    assert isinstance(outcome, Unavailable) and 280 < outcome.retry_after_s <= 300


def test_a_page_of_a_gateway_is_not_quoted() -> None:
    page = Response("<html><h1>502 Bad Gateway</h1></html>", 502)
    assert ask(Models(page)) == Unavailable("HTTP 502 from the endpoint", 5.0)


def test_one_that_hangs_is_away() -> None:
    models = Models(text("never"))
    models.hang = True
    assert ask(models, request_timeout_s=0.3) == Unavailable(
        "the endpoint did not answer within 0.3 s"
    )


def test_a_refused_and_a_cut_connection_are_away() -> None:
    assert ask_at("http://127.0.0.1:9/v1") == Unavailable(
        "the endpoint cannot be reached: ConnectError"
    )

    async def cut(data: bytes) -> Outcome:
        async with raw_server(data) as url:
            return await build_handler(HandlerSpec(openai=endpoint(url)))(a_turn())

    for data in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"):
        outcome = asyncio.run(cut(data))
        assert isinstance(outcome, Unavailable), outcome
        assert outcome.reason.startswith("the endpoint cannot be reached: ")


@pytest.mark.certifies(145)
def test_the_probe_costs_nothing_and_knows_what_it_cannot_know() -> None:
    async def main() -> None:
        models = Models(text("ok"))
        async with models.serving():
            handler: Any = build_handler(HandlerSpec(openai=endpoint(models.url)))
            assert await handler.available() is None
            models.models = status(503, "down", retry_after="7")
            assert await handler.available() == Unavailable("HTTP 503 from the endpoint: down", 7.0)
            for unknown in (status(404), status(401, "no"), Response("[]"), Response("x" * 10)):
                models.models = unknown
                assert await handler.available() is None
        gone = await handler.available()
        assert gone is not None and "cannot be reached" in gone.reason
        assert models.seen == []

    asyncio.run(main())


# -- what a retry would not mend ------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(400, "no such model: m-1"), "HTTP 400 from the endpoint: no such model: m-1"),
        (status(404), "HTTP 404 from the endpoint"),
        (Response('{"detail": "no"}', 422), "HTTP 422 from the endpoint: no"),
        (Response("plain words", 403), "HTTP 403 from the endpoint: plain words"),
        (status(302, location="http://evil.example/"), "it is elsewhere; correct `base_url`"),
        (Response("{not json"), "the endpoint's answer is no chat completion"),
        (Response("[]"), "the endpoint's answer is no chat completion"),
        (Response('{"choices": []}'), "the endpoint's answer holds no choice"),
        (Response('{"choices": [{"message": 7}]}'), "the endpoint's answer is no chat completion"),
        (Response("[" * 200_000), "the endpoint's answer is no chat completion"),
        (Response(b"\xff\xfe"), "the endpoint's answer is no chat completion"),
        (Response("x" * 5_000_000), "the endpoint's answer is longer than 4194304 bytes"),
        (text("   "), "the model said nothing"),
    ],
)
def test_the_rest_is_a_failure_with_its_reason(answer: Response, reason: str) -> None:
    outcome = ask(Models(answer))
    assert isinstance(outcome, Nak) and reason in outcome.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (completion({"refusal": "I will not"}), "the model declines: I will not"),
        (completion({"content": "bad"}, "content_filter"), "the model declines: its content"),
    ],
)
def test_what_a_model_declines_is_given_up_and_said(answer: Response, reason: str) -> None:
    outcome = ask(Models(answer))
    assert isinstance(outcome, Abandon) and reason in outcome.reason


def test_a_vendors_message_is_cut_and_on_one_line() -> None:
    outcome = ask(Models(status(400, "a\n\x1b[31m" + "x" * 5000)))
    assert isinstance(outcome, Nak) and len(outcome.reason) < 300
    assert outcome.reason.isprintable()


# -- the key --------------------------------------------------------------------------


def test_the_key_is_seen_nowhere_but_at_the_endpoint(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    quoting = status(401, f"Incorrect API key provided: {KEY}. Get one at example.com")
    with capture_logs() as logs:
        outcomes = [ask(Models(quoting)), ask(Models(status(503, KEY))), ask(Models(text("ok")))]
        outcomes.append(ask_at("http://127.0.0.1:9/v1"))
    assert outcomes[0] == Nak(
        "HTTP 401 from the endpoint: Incorrect API key provided: ***. Get one at example.com"
    )
    captured = capfd.readouterr()
    everything = [*map(repr, outcomes), repr(logs), caplog.text, captured.out, captured.err]
    everything += [repr(endpoint("http://x")), repr(HandlerSpec(openai=endpoint("http://x")))]
    assert not [part for part in everything if KEY in part]


def test_what_the_prompt_says_is_valid_json_for_any_body() -> None:
    models = Models(text("ok"))
    body = 'quote " backslash \\ newline \n é ✓ \u2028'
    assert ask(models, a_turn(body=body)) == Ack("ok")
    assert body in json.loads(json.dumps(models.seen[0]))["messages"][1]["content"]
