"""Slack's signature and its window against replays, and what Slack is answered."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import quote_plus, urlencode

import chat_payloads as chats
import pytest

from crewlet import sources
from crewlet.sources import Notification, Skip, Unreadable
from crewlet.sources.edge_facts import RECEIVED
from crewlet.sources.slack import SKEW_S, WINDOW_S

SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
BODY = b'{"type": "event_callback"}'
NOW = 1_772_359_200
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def signed(sent: str, body: bytes = BODY, secret: bytes = SECRET) -> dict[str, str]:
    content = b"v0:" + sent.encode() + b":" + body
    return {
        "X-Slack-Request-Timestamp": sent,
        "X-Slack-Signature": "v0=" + hmac.new(secret, content, hashlib.sha256).hexdigest(),
        RECEIVED: f"{NOW}.250",
    }


def verify(headers: dict[str, str], body: bytes = BODY, secret: bytes = SECRET) -> bool:
    return sources.verify("slack", headers, body, secret)


def test_the_example_of_slacks_own_documents() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
        b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
        b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2F"
        b"commands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id="
        b"398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    digest = "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    headers = {
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": f"v0={digest}",
        RECEIVED: "1531420620.5",
    }
    assert verify(headers, body)


@pytest.mark.certifies(131)
@pytest.mark.parametrize("age", [0, 1, WINDOW_S, -SKEW_S])
def test_a_signature_within_the_window_verifies(age: int) -> None:
    assert verify(signed(str(NOW - age)) | {RECEIVED: str(NOW)})


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    "sent",
    [
        str(NOW - WINDOW_S - 1),
        str(NOW + SKEW_S + 1),
        str(NOW + WINDOW_S + 1),
        str(NOW + 10**9),
        "0",
        "",
        "-5",
        "+5",
        f" {NOW}",
        f"{NOW}.5",
        "1e9",
        "nan",
        "inf",
        "now",
        "\u0661\u0667\u0667\u0662",
        "9" * 13,
        "9" * 5000,
        f"{NOW}, {NOW}",
    ],
)
def test_t15_a_time_outside_the_window_or_none_does_not(sent: str) -> None:
    assert not verify(signed(sent))


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {RECEIVED: str(NOW)},
        signed(str(NOW)) | {"X-Slack-Signature": ""},
        signed(str(NOW)) | {"X-Slack-Signature": signed(str(NOW))["X-Slack-Signature"][3:]},
        signed(str(NOW)) | {"X-Slack-Signature": signed(str(NOW))["X-Slack-Signature"].upper()},
        signed(str(NOW)) | {"X-Slack-Signature": signed(str(NOW))["X-Slack-Signature"][:-1]},
        signed(str(NOW)) | {"X-Slack-Signature": "v0=\u00e9\udc80"},
        signed(str(NOW), secret=b"another"),
        signed(str(NOW), body=BODY + b" "),
        signed(str(NOW)) | {"X-Slack-Request-Timestamp": str(NOW - 1)},
        signed(str(NOW)) | {RECEIVED: ""},
        signed(str(NOW)) | {RECEIVED: "soon"},
        {k: v for k, v in signed(str(NOW)).items() if k != RECEIVED},
    ],
)
def test_t15_any_other_signature_does_not(headers: dict[str, str]) -> None:
    assert not verify(headers)


def test_t15_an_empty_secret_verifies_nothing() -> None:
    assert not verify(signed(str(NOW), secret=b""), secret=b"")


def test_the_challenge_is_answered_and_published_to_nobody() -> None:
    reply = sources.reply("slack", chats.payload("slack", "url_verification"))
    assert reply == sources.Reply({"challenge": "3eZbrw1aB"}, publish=False)


@pytest.mark.parametrize("challenge", [None, "", 7, {}, []])
def test_a_challenge_that_is_none_is_an_ordinary_delivery(challenge: object) -> None:
    assert sources.reply("slack", {"type": "url_verification", "challenge": challenge}) is None


@pytest.mark.parametrize("payload", [None, [], 7, "x"])
def test_what_is_no_object_gets_the_ordinary_answer(payload: object) -> None:
    assert sources.reply("slack", payload) is None


def test_an_event_gets_the_ordinary_answer_and_a_command_an_empty_one() -> None:
    assert sources.reply("slack", chats.payload("slack", "message__channel")) is None
    assert sources.reply("slack", {"command": "/deploy"}) == sources.Reply()
    assert sources.reply("slack", chats.payload("slack", "block_actions")) == sources.Reply()
    assert sources.reply("github", {"type": "url_verification", "challenge": "x"}) is None


def command(**fields: str) -> Notification:
    form = {
        "token": "hunter2",
        "team_id": "T1",
        "channel_id": "C1",
        "channel_name": "general",
        "user_id": "UANN",
        "user_name": "ann",
        "command": "/deploy",
        "text": "now & fast, <@UDEV|dev>",
        "trigger_id": "1.2.3",
        **fields,
    }
    body = urlencode(form).encode()
    [read] = sources.parse("slack", FORM, sources.published("slack", body))
    assert isinstance(read, Notification)
    assert b"hunter2" not in sources.published("slack", body)
    assert sources.delivery_key("slack", FORM, body) == "1.2.3"
    return read


def test_a_slash_command_is_a_form() -> None:
    read = command()
    assert (read.event_type, read.sender, read.addressed) == ("slash_command", "UANN", ("UDEV",))
    assert (read.verdict, read.partition_key) == ("wake", "")
    assert read.body == "/deploy now & fast, <@UDEV>"
    assert read.metadata["command"] == "/deploy"


def test_a_slash_command_in_a_direct_message_belongs_to_it() -> None:
    assert command(channel_id="D1").partition_key == "slack:D1"
    assert command(channel_id="G1", channel_name="mpdm-ann--dev-1").partition_key == "slack:G1"


def test_a_slash_command_that_addresses_nobody_is_for_routes() -> None:
    assert command(text="now").verdict == "nothing"


def test_a_button_is_json_in_a_form() -> None:
    value = {**chats.payload("slack", "block_actions"), "token": "hunter2"}
    body = f"payload={quote_plus(json.dumps(value))}".encode()
    kept = sources.published("slack", body)
    assert b"hunter2" not in kept
    assert sources.parse("slack", FORM, kept) == [chats.read("slack", value)]


def test_the_check_of_the_certificate_is_read() -> None:
    [read] = sources.parse("slack", FORM, b"ssl_check=1&token=x")
    assert (read.event_type, read.verdict) == ("ssl_check", "nothing")  # type: ignore[union-attr]


@pytest.mark.parametrize("body", [b"", b"payload=", b"payload=%7B", b"a=%ff", b"&&&"])
@pytest.mark.parametrize("vendor", chats.CHATS)
def test_t18_a_form_that_is_none_is_unreadable_or_a_skip(vendor: str, body: bytes) -> None:
    [read] = sources.parse(vendor, FORM, body)
    assert isinstance(read, Skip)
    if vendor == "slack" or not body.startswith(b"payload"):
        with pytest.raises(Unreadable):
            sources.decode(vendor, FORM, body)


@pytest.mark.field("C19")
def test_a_message_that_comes_twice_is_one_occurrence_and_an_edit_is_another() -> None:
    message = chats.read_own("slack", "message__channel")
    mention = chats.read_own("slack", "app_mention")
    assert message.occurrence == mention.occurrence == "slack:C1:1772359200.000100"
    assert chats.read_own("slack", "message__edited").occurrence == ""
    assert chats.read_own("slack", "message__preview").verdict == "nothing"
