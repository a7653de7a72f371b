"""Whatever the chats and senders of one's own may send is read or skipped, quickly; and the keys
of a thread follow from its place alone."""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any
from urllib.parse import quote_plus

import chat_payloads as chats
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oddities import DROP, ODD, ODD_VALUES, mutate, places

from crewlet import sources
from crewlet.sources import Notification, Skip, parse
from crewlet.sources.edge_facts import RULE
from crewlet.sources.generic_rule import PATHS, Rule, written
from crewlet.sources.phrases import PHRASES

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CASES = [
    (vendor, name, case["payload"])
    for vendor in chats.CHATS
    for name, case in chats.own(vendor).items()
]
SLOWEST_S = 0.05
FUZZ_SEED = 20_260_303


def assert_sound(read: object, source: str) -> None:
    """What holds for everything that is ever read of a chat."""
    assert isinstance(read, Notification | Skip)
    assert read.source == source
    if isinstance(read, Skip):
        assert read.reason in PHRASES
        assert read.detail
        return
    assert read.partition_key.startswith(read.conversation_identity)
    assert bool(read.partition_key) == bool(read.conversation_identity)
    assert not read.partition_key or read.partition_key.startswith(f"{source}:")
    assert read.partition_key.rstrip(":") == read.partition_key
    assert read.sender
    assert read.sender.casefold() not in {name.casefold() for name in read.addressed}
    assert read.verdict != "follow" or (read.partition_key and not read.addressed)
    assert read.body and read.event_type
    assert msgspec.json.decode(msgspec.json.encode(read), type=Notification) == read


def inner_post(value: Any) -> Any:
    """A frame with its post as the object that it is, for a mutation inside."""
    value = copy.deepcopy(value)
    data = value.get("data") if isinstance(value, dict) else None
    for key in ("post", "reaction", "mentions"):
        if isinstance(data, dict) and isinstance(data.get(key), str) and data[key] != "{":
            data[key] = json.loads(data[key])
    return value


def outer_post(value: Any) -> Any:
    """The same frame with the JSON inside a text again."""
    data = value.get("data") if isinstance(value, dict) else None
    for key in ("post", "reaction", "mentions"):
        if isinstance(data, dict) and isinstance(data.get(key), dict | list):
            data[key] = json.dumps(data[key])
    return value


@pytest.mark.certifies(118, 119)
@pytest.mark.field("C31")
@settings(max_examples=500, deadline=500)
@given(st.data())
def test_t20_a_mutated_payload_is_read_or_skipped(data: st.DataObject) -> None:
    vendor, _, value = data.draw(st.sampled_from(CASES))
    value = inner_post(value)
    paths = places(value)
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(value, data.draw(st.sampled_from(paths)), data.draw(ODD))
    body = json.dumps(outer_post(value)).encode()
    for sent, content in (
        (chats.JSON, body),
        (FORM, f"payload={quote_plus(body.decode())}".encode()),
        (FORM, body),
    ):
        read = parse(vendor, sent, content)
        assert read
        for one in read:
            assert_sound(one, vendor)
        assert isinstance(sources.delivery_key(vendor, sent, content), str)
        assert isinstance(sources.published(vendor, content), bytes)
        assert sources.verify(vendor, sent, content, b"secret") is False


@settings(max_examples=150, deadline=500)
@given(st.sampled_from(CASES), st.data())
def test_t20_damaged_bytes_are_read_or_skipped(case: Any, data: st.DataObject) -> None:
    vendor, _, value = case
    body = bytearray(json.dumps(value).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for content in (bytes(body), bytes(body[:cut])):
        for one in parse(vendor, chats.JSON, content):
            assert_sound(one, vendor)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=6), st.binary())
def test_any_headers_and_bytes_are_a_skip_or_a_notification(
    sent: dict[str, str], body: bytes
) -> None:
    for vendor in (*chats.CHATS, "generic/x"):
        for headers in (sent, FORM, {**chats.JSON, **sent}):
            assert parse(vendor, headers, body)
            assert sources.verify(vendor, headers, body, b"secret") is False


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=12,
)
PATH = st.sampled_from(["", "a", "a.b", "a[0]", "b[*].c", "d", "c.d", "[0]", "[*]"])


@pytest.mark.certifies(118, 119)
@given(JSON_VALUES, st.fixed_dictionaries(dict.fromkeys(PATHS, PATH)))
def test_any_json_under_any_rule_is_sound(value: object, paths: dict[str, str]) -> None:
    sent = {RULE: written(Rule(header="X", **paths))}
    for one in parse("generic/x", sent, json.dumps(value).encode()):
        assert_sound(one, "generic/x")
        assert isinstance(sources.key_of("generic/x", sent, value), str)


STAMPS = st.from_regex(r"[0-9]{10}\.[0-9]{6}", fullmatch=True)
CHANNELS = st.from_regex(r"[CGD][A-Z0-9]{2,10}", fullmatch=True)
KINDS = st.sampled_from(["channel", "group", "im", "mpim", "app_home", None])


@pytest.mark.certifies(115, 117, 118)
@given(CHANNELS, KINDS, STAMPS, STAMPS)
def test_slack_every_message_of_a_thread_has_its_one_key(
    channel: str, kind: str | None, first: str, later: str
) -> None:
    event = {"type": "message", "user": "UANN", "text": "x", "channel": channel}
    if kind is not None:
        event["channel_type"] = kind
    root = chats.read("slack", {"type": "event_callback", "event": {**event, "ts": first}})
    replies = [
        chats.read(
            "slack",
            {
                "type": "event_callback",
                "event": {**event, "ts": later, "thread_ts": first, "subtype": subtype},
            },
        )
        for subtype in ("", "file_share", "thread_broadcast")
    ]
    direct = kind in ("im", "mpim", "app_home") or (kind is None and channel.startswith("D"))
    thread = f"slack:{channel}:{first}"
    identity = f"slack:{channel}" if direct else thread
    assert {reply.partition_key for reply in replies} == {thread}
    assert {one.conversation_identity for one in (root, *replies)} == {identity}
    assert root.partition_key == identity


IDS = st.from_regex(r"[a-z0-9]{26}", fullmatch=True)


@pytest.mark.certifies(115, 117, 118)
@given(IDS, IDS, IDS, st.sampled_from("OPDG"))
def test_mattermost_every_post_of_a_thread_has_its_one_key(
    channel: str, first: str, later: str, kind: str
) -> None:
    def read(post_id: str, root: str) -> Notification:
        post = {"id": post_id, "root_id": root, "channel_id": channel, "user_id": "u", "type": ""}
        data = {"post": json.dumps(post), "channel_type": kind}
        return chats.read("mattermost", {"event": "posted", "data": data})

    root, reply = read(first, ""), read(later, first)
    thread = f"mattermost:{channel}:{first}"
    identity = f"mattermost:{channel}" if kind in "DG" else thread
    assert reply.partition_key == thread
    assert root.partition_key == identity
    assert reply.conversation_identity == root.conversation_identity == identity


@pytest.mark.parametrize("vendor", chats.CHATS)
def test_the_sender_is_never_addressed_by_himself(vendor: str) -> None:
    for case in chats.own(vendor).values():
        read = chats.read(vendor, case["payload"])
        assert read.sender not in read.addressed


PIECES = [
    "<@U1> `a` ", "<", "<a|", "<a" * 3, "<!subteam^", "```", "`", "&amp;", "@a.", "@", "@a `b` ",
    '"token":"', "token=", "&token=", "%22token%22", "\n", "<@", "|", "> ", "@a_",
]  # fmt: skip


@pytest.mark.parametrize("vendor", chats.CHATS)
@pytest.mark.parametrize("piece", PIECES)
def test_t20_a_text_of_megabytes_holds_the_loop_only_shortly(vendor: str, piece: str) -> None:
    text = piece * (2_000_000 // len(piece))
    value = chats.payload("slack", "message__channel")
    value["event"]["text"] = text
    if vendor == "mattermost":
        value = inner_post(chats.payload("mattermost", "posted__open"))
        value["data"]["post"]["message"] = text
        value = outer_post(value)
    body = msgspec.json.encode(value)
    start = time.process_time()
    for one in parse(vendor, chats.JSON, body):
        assert_sound(one, vendor)
    sources.published(vendor, body)
    sources.published(vendor, text.encode())
    sources.delivery_key(vendor, chats.JSON, body)
    assert time.process_time() - start < 1.0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_t20_a_hundred_thousand_mutated_payloads_never_hold_the_loop() -> None:
    chance = random.Random(FUZZ_SEED)
    kept = [(vendor, inner_post(value)) for vendor, _, value in CASES]
    if chats.SHARED.is_dir():
        kept += [
            (vendor, inner_post(json.loads(path.read_bytes())))
            for vendor in chats.CHATS
            for path in sorted((chats.SHARED / vendor).glob("*__*.json"))
        ]
    known = [(vendor, value, places(value)) for vendor, value in kept]
    odd_values = [*ODD_VALUES, DROP, "<@U1> `", "C1", "1772359200.000100"]
    slowest = 0.0
    for _ in range(100_000):
        vendor, value, paths = chance.choice(known)
        value = msgspec.json.decode(msgspec.json.encode(value))
        for path in chance.choices(paths, k=chance.randint(1, 3)):
            mutate(value, path, chance.choice(odd_values))
        body = msgspec.json.encode(outer_post(value))
        start = time.process_time()
        read = parse(vendor, chats.JSON, body)
        slowest = max(slowest, time.process_time() - start)
        for one in read:
            assert_sound(one, vendor)
    assert slowest < SLOWEST_S
