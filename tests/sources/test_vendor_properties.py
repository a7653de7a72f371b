"""Whatever GitLab, Jira, Confluence and Plane may send is read or skipped, quickly; and what a
conversation is called follows from its own names, whatever else a delivery says."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import msgspec
import pytest
import vendor_payloads as vendors
from hypothesis import given, settings
from hypothesis import strategies as st
from oddities import DROP, ODD, ODD_VALUES, assert_sound, mutate, places

from crewlet.sources import Notification, parse

OWN = vendors.own()
BY_VENDOR = {name: vendors.own(name) for name in vendors.VENDORS}
SLOWEST_S = 0.05
FUZZ_SEED = 20_260_302


@pytest.mark.certifies(118, 119)
@pytest.mark.field("C31")
@settings(max_examples=500, deadline=500)
@given(st.data())
def test_t20_a_mutated_payload_is_read_or_skipped(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(OWN))
    value = json.loads(source.body)
    paths = places(value)
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(value, data.draw(st.sampled_from(paths)), data.draw(ODD))
    read = parse(source.vendor, source.headers, json.dumps(value).encode())
    assert read
    for one in read:
        assert_sound(one, source.vendor)


@settings(max_examples=150, deadline=500)
@given(st.sampled_from(OWN), st.data())
def test_t20_damaged_bytes_are_read_or_skipped(
    source: vendors.Delivery, data: st.DataObject
) -> None:
    body = bytearray(source.body)
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for content in (bytes(body), bytes(body[:cut])):
        for one in parse(source.vendor, source.headers, content):
            assert_sound(one, source.vendor)


@given(st.sampled_from(OWN), st.dictionaries(st.text(max_size=20), st.text(max_size=80)))
def test_any_headers_are_a_skip_or_a_notification(
    source: vendors.Delivery, sent: dict[str, str]
) -> None:
    for headers in (sent, {**source.headers, **sent}, dict.fromkeys(source.headers, "x\u0000é")):
        for one in parse(source.vendor, headers, source.body):
            assert_sound(one, source.vendor)


@given(st.sampled_from(OWN), st.text(min_size=1, max_size=30), ODD)
def test_a_new_field_changes_nothing(source: vendors.Delivery, name: str, odd: Any) -> None:
    value = json.loads(source.body)
    if odd is DROP:
        return
    before = parse(source.vendor, source.headers, source.body)
    body = json.dumps({**value, f"new_{name}": odd}).encode()
    assert parse(source.vendor, source.headers, body) == before


SEGMENT = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
PATHS = st.lists(SEGMENT, min_size=2, max_size=5).map("/".join)
NUMBERS = st.integers(1, 2**31)
THREADS = {"#": ("issue__open", "issue__update_labels"), "!": ("merge_request__open",)}


@pytest.mark.certifies(114, 117, 118)
@given(PATHS, NUMBERS, st.sampled_from(["#", "!"]))
def test_gitlab_every_delivery_of_a_thread_has_its_one_key(
    path: str, count: int, sign: str
) -> None:
    kind = "issue" if sign == "#" else "merge_request"
    said = vendors.payload("gitlab/note__on_merge_request")
    del said["merge_request"]
    values = [vendors.payload(f"gitlab/{name}") for name in THREADS[sign]]
    for value in values:
        value["object_attributes"]["iid"] = count
    values.append({**said, kind: {"iid": count, "title": "x"}})
    for value in values:
        value["project"] = {"path_with_namespace": path}
        read = vendors.read("gitlab/issue__open", value)
        assert read.partition_key == f"gitlab:{path}{sign}{count}"
        assert read.conversation_identity == read.partition_key


@pytest.mark.certifies(111, 117, 118)
@given(st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True), NUMBERS)
def test_jira_every_delivery_of_an_issue_has_its_one_key(project: str, count: int) -> None:
    for each in BY_VENDOR["jira"]:
        value = json.loads(each.body)
        if "issue" not in value:
            continue
        value["issue"]["key"] = f"{project}-{count}"
        [read] = parse("jira", each.headers, json.dumps(value).encode())
        assert isinstance(read, Notification)
        assert read.partition_key == read.conversation_identity == f"jira:{project}-{count}"


@pytest.mark.certifies(112, 117, 118)
@given(st.integers(1, 2**62))
def test_confluence_every_delivery_of_a_page_has_its_one_key(page: int) -> None:
    for each in BY_VENDOR["confluence"]:
        if not each.row["key"]:
            continue
        text = each.body.decode()
        number = str(each.row["key"])
        body = text.replace(f'"{number}"', f'"{page}"').replace(f" {number}", f" {page}")
        if '"idAsString"' not in body and f'"{page}"' not in body and page >= 2**53:
            continue  # a server's number beyond what JSON keeps
        [read] = parse("confluence", each.headers, body.encode())
        assert isinstance(read, Notification), read
        assert read.partition_key == read.conversation_identity == f"confluence:{page}"


@pytest.mark.certifies(114, 117, 118)
@given(st.uuids())
def test_plane_every_delivery_of_an_item_has_its_one_key(item: object) -> None:
    for each in BY_VENDOR["plane"]:
        if each.row["key"] != vendors.WORK:
            continue
        body = each.body.replace(vendors.WORK.encode(), str(item).encode())
        [read] = parse("plane", each.headers, body)
        assert isinstance(read, Notification)
        assert read.partition_key == read.conversation_identity == f"plane:{item}"


HUGE = {
    "gitlab/note__on_merge_request": ("object_attributes", "note"),
    "gitlab/issue__open": ("object_attributes", "description"),
    "jira/comment_created__cloud": ("comment", "body"),
    "plane/issue_comment_created__mention": ("data", "comment_html"),
    "plane/v2_workitem_comment_created": ("data", "comment"),
    "confluence/page_created__server": ("page", "title"),
}
PIECES = [
    "@a.b/c `d` <!-- > \n", "@" + "a-" * 9, "[~accountid:x] {code} ", "[~", "{code:",
    "<mention-component entity_identifier=", "<", "<mention-component a=\"b\"> ", "/-/", "@a.",
    "{noformat}", "entity_name='x' ",
]  # fmt: skip


@pytest.mark.parametrize("path", HUGE)
@pytest.mark.parametrize("piece", PIECES)
def test_t20_a_body_of_megabytes_holds_the_loop_only_shortly(path: str, piece: str) -> None:
    value = vendors.payload(path)
    inner: Any = value
    for key in HUGE[path][:-1]:
        inner = inner[key]
    inner[HUGE[path][-1]] = piece * (2_000_000 // len(piece))
    source = vendors.delivery(path)
    body = msgspec.json.encode(value)
    start = time.process_time()
    for one in parse(source.vendor, source.headers, body):
        assert_sound(one, source.vendor)
    assert time.process_time() - start < 1.0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_t20_a_hundred_thousand_mutated_payloads_never_hold_the_loop() -> None:
    chance = random.Random(FUZZ_SEED)
    known = [(each, value, places(value)) for each in [*OWN, *vendors.shared()]
             for value in [json.loads(each.body)]]  # fmt: skip
    slowest = 0.0
    for _ in range(100_000):
        source, value, paths = chance.choice(known)
        value = msgspec.json.decode(msgspec.json.encode(value))
        for path in chance.choices(paths, k=chance.randint(1, 3)):
            mutate(value, path, chance.choice(ODD_VALUES))
        body = msgspec.json.encode(value)
        start = time.process_time()
        read = parse(source.vendor, source.headers, body)
        slowest = max(slowest, time.process_time() - start)
        for one in read:
            assert_sound(one, source.vendor)
    assert slowest < SLOWEST_S
