"""Whatever a vendor may send: payloads with anything in any place are read or skipped, quickly."""

from __future__ import annotations

import json
import random
import time

import github_payloads as own
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oddities import ODD, ODD_VALUES, assert_sound, mutate, places

from crewlet.sources import Notification, parse

PAYLOADS = {name: own.body(name) for name in own.own_names()}


@pytest.mark.certifies(118, 119)
@pytest.mark.field("C31")
@settings(max_examples=400, deadline=500)
@given(st.data())
def test_t20_a_mutated_payload_is_read_or_skipped(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PAYLOADS)))
    value = json.loads(PAYLOADS[name])
    paths = places(value)
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(value, data.draw(st.sampled_from(paths)), data.draw(ODD))
    event = data.draw(st.sampled_from([own.event_of(name), own.event_of(name), "push", "issues"]))
    read = parse("github", own.headers(event), json.dumps(value).encode())
    assert read
    for one in read:
        assert_sound(one)


@settings(max_examples=200, deadline=500)
@given(st.sampled_from(sorted(PAYLOADS)), st.data())
def test_t20_damaged_bytes_are_read_or_skipped(name: str, data: st.DataObject) -> None:
    body = bytearray(PAYLOADS[name])
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for content in (bytes(body), bytes(body[:cut])):
        for one in parse("github", own.headers(own.event_of(name)), content):
            assert_sound(one)


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=6),
    st.binary(max_size=200),
)
def test_any_headers_and_bytes_are_a_skip_or_a_notification(
    sent: dict[str, str], body: bytes
) -> None:
    assert parse("github", sent, body)


@given(st.recursive(st.none() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4)))
def test_any_json_under_any_event_is_sound(value: object) -> None:
    for event in ("issues", "push", "check_run", "pull_request", "nonsense"):
        for one in parse("github", own.headers(event), json.dumps({"issue": value}).encode()):
            assert_sound(one)


def test_t20_a_body_of_six_mebibytes_holds_the_loop_only_shortly() -> None:
    value = own.payload("issue_comment__created.json")
    value["comment"]["body"] = "@a `b` <!-- > \n" * 400_000
    value["issue"]["labels"] = [{"name": f"label {n}"} for n in range(10_000)]
    body = json.dumps(value).encode()
    start = time.process_time()
    [read] = parse("github", own.headers("issue_comment"), body)
    assert time.process_time() - start < 1.0
    assert isinstance(read, Notification)
    assert len(read.metadata["labels"]) == 100


FUZZ_SEED = 20_260_301


@pytest.mark.long
@pytest.mark.timeout(900)
def test_t20_a_hundred_thousand_mutated_payloads_never_hold_the_loop() -> None:
    chance = random.Random(FUZZ_SEED)
    kept = [(own.event_of(name), json.loads(body)) for name, body in PAYLOADS.items()]
    if own.SHARED.is_dir():
        files = sorted((own.SHARED / "github").glob("*__*.json"))
        kept += [(own.event_of(path.name), json.loads(path.read_bytes())) for path in files]
    known = [(event, value, places(value)) for event, value in kept]
    slowest = 0.0
    for _ in range(100_000):
        event, value, paths = chance.choice(known)
        value = msgspec.json.decode(msgspec.json.encode(value))
        for path in chance.choices(paths, k=chance.randint(1, 3)):
            mutate(value, path, chance.choice(ODD_VALUES))
        body = msgspec.json.encode(value)
        start = time.process_time()
        read = parse("github", own.headers(event), body)
        slowest = max(slowest, time.process_time() - start)
        for one in read:
            assert_sound(one)
    assert slowest < 0.05
