"""GitLab, Jira, Confluence, Plane: event, conversation, sender, addressed and verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
import vendor_payloads as vendors
from github_payloads import ROOT
from vendor_payloads import Delivery

from crewlet.sources import Notification, Skip, parse
from crewlet.sources.gitlab_rules import FOLLOWED
from crewlet.sources.phrases import PARSER_REFUSED

OWN = vendors.own()
SHARED = vendors.shared()
TITLES = {"gitlab": "GitLab", "jira": "Jira", "confluence": "Confluence", "plane": "Plane"}
ABSENT = f"no shared webhook data at {vendors.SHARED}; set CREWLET_WEBHOOK_DATA"


@pytest.mark.certifies(110, 111, 112, 114, 117, 118, 119)
@pytest.mark.parametrize("given", OWN, ids=str)
def test_own_payload_is_read_as_expected(given: Delivery) -> None:
    vendors.assert_as_expected(given)


@pytest.mark.certifies(110, 111, 112, 114)
@pytest.mark.parametrize("given", SHARED or [None], ids=str)
def test_shared_payload_is_read_as_expected(given: Delivery | None) -> None:
    if given is None:
        pytest.skip(ABSENT)
    if given.row["event"] != vendors.NO_EVENT:
        vendors.assert_as_expected(given)
        return
    [skip] = parse(given.vendor, given.headers, given.body)  # "reject or ignore"
    assert isinstance(skip, Skip) and skip.reason == PARSER_REFUSED


@pytest.mark.parametrize("vendor", vendors.VENDORS)
def test_every_payload_has_a_row(vendor: str) -> None:
    files = {path.name for path in (vendors.OWN / vendor).iterdir()} - {"expect.json"}
    assert files == {given.name for given in OWN if given.vendor == vendor}
    if SHARED:
        known = {given.name for given in SHARED if given.vendor == vendor}
        there = {path.name for path in (vendors.SHARED / vendor).iterdir()}
        assert there - {"headers.json", "paths.json"} == known


@pytest.mark.field("C31")
@pytest.mark.parametrize("vendor", vendors.VENDORS)
@pytest.mark.parametrize(
    ("value", "said"),
    [({}, "an empty object"), ([], "an array"), (7, "a number"), (None, "null"), ("x", "a text")],
)
def test_json_that_is_no_filled_object_is_a_skip(vendor: str, value: object, said: str) -> None:
    headers = {"X-Gitlab-Event": "Issue Hook", "X-Plane-Event": "issue", ":event": "page_created"}
    [skip] = parse(vendor, headers, json.dumps(value).encode())
    assert isinstance(skip, Skip)
    assert skip.reason == PARSER_REFUSED and said in skip.detail


@pytest.mark.parametrize("vendor", vendors.VENDORS)
@pytest.mark.parametrize("name", ["", "Issue Events", "a b", "../etc", "x" * 65, "é", None, 7, []])
def test_a_payload_without_a_proper_event_name_is_a_skip(vendor: str, name: Any) -> None:
    keys = ("object_kind", "event_name", "webhookEvent", "event", "eventType")
    [skip] = parse(vendor, {}, json.dumps({"user": {}} | dict.fromkeys(keys, name)).encode())
    assert isinstance(skip, Skip)
    assert (skip.reason, skip.event_type) == (PARSER_REFUSED, "")


NAMELESS: list[tuple[str, tuple[str, ...]]] = [
    ("gitlab/issue__open", ("project", "path_with_namespace")),
    ("gitlab/note__on_commit", ("commit",)),
    ("gitlab/merge_request__open", ("object_attributes",)),
    ("jira/issue_created__assigned", ("issue", "key")),
    ("confluence/page_created__server", ("page", "id")),
    ("plane/issue_updated__state", ("data", "id")),
]


@pytest.mark.parametrize(("path", "place"), NAMELESS)
@pytest.mark.parametrize("odd", [None, "", "a b", "\u0000", 0, -1, True, 2**53, [], {"x": 1}])
def test_a_conversation_that_cannot_be_named_is_never_filed_under_another_key(
    path: str, place: tuple[str, ...], odd: object
) -> None:
    value = vendors.payload(path)
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = odd
    given = vendors.delivery(path)
    if path == "gitlab/note__on_commit":
        value["object_attributes"]["commit_id"] = odd
    [skip] = parse(given.vendor, given.headers, json.dumps(value).encode())
    assert isinstance(skip, Skip)
    assert skip.reason == PARSER_REFUSED and skip.event_type


@pytest.mark.field("C31")
@pytest.mark.parametrize("user", [None, {}, [], 7, {"username": None}, {"username": ""}, "root"])
def test_a_payload_without_a_sender_is_from_unknown(user: object) -> None:
    value = vendors.payload("gitlab/issue__update_labels") | {"user": user}
    assert vendors.read("gitlab/issue__update_labels", value).sender == "unknown"


@pytest.mark.field("C20")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jira/comment_created__cloud", "jira/issue_updated__commented"),
        ("jira/comment_created__cloud", "jira/issue_updated__status_with_comment"),
        ("plane/issue_comment_created__mention", "plane/issue_comment_created__again"),
        ("plane/issue_updated__assignee_ids", "plane/issue_updated__assignees"),
    ],
)
def test_two_deliveries_of_one_thing_name_it_alike(one: str, other: str) -> None:
    first, second = vendors.read(one), vendors.read(other)
    assert first.occurrence == second.occurrence != ""
    assert first.partition_key == second.partition_key
    assert first.addressed == second.addressed


@pytest.mark.field("C20")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jira/comment_created__cloud", "jira/comment_updated__cloud"),
        ("jira/comment_created__cloud", "jira/comment_created__no_issue"),
        ("plane/issue_comment_created__mention", "plane/issue_comment_updated__edited"),
        ("gitlab/note__on_merge_request", "gitlab/note__confidential"),
    ],
)
def test_two_things_are_never_one(one: str, other: str) -> None:
    assert vendors.read(one).occurrence != vendors.read(other).occurrence


def test_a_bare_comment_says_what_to_look_up() -> None:
    bare = vendors.read("jira/comment_created__no_issue_mention")
    assert (bare.verdict, bare.addressed, bare.partition_key) == ("lookup", ("ann",), "")
    assert (bare.metadata["issue_id"], bare.metadata["comment_id"]) == ("10040", "501")
    assert vendors.read("confluence/comment_created__server").metadata["comment_id"] == "99"


@pytest.mark.parametrize(
    ("path", "lead"),
    [
        ("gitlab/issue__open", ""),
        ("gitlab/note__on_merge_request", ""),
        (
            "gitlab/issue__update_labels",
            "issue updated in acme/space/rocket#7 (labels: bug → bug, urgent)",
        ),
        ("gitlab/pipeline__failed", "pipeline in acme/space/rocket!9 (status: failed)"),
        ("jira/issue_created__assigned", ""),
        ("jira/issue_updated__status_with_comment", ""),
        (
            "jira/issue_updated__status",
            "issue updated in POC-7 (status: To Do → Done; resolution: (none) → Done)",
        ),
        ("plane/issue_created__assigned", ""),
        ("plane/issue_comment_updated__edited", ""),
        ("plane/issue_updated__description", "issue updated (description)"),
        ("plane/issue_updated__state", "issue updated (state: Todo → Done)"),
    ],
)
def test_what_goes_stale_has_a_lead_and_what_was_said_has_none(path: str, lead: str) -> None:
    assert vendors.read(path).lead == lead


@pytest.mark.parametrize(
    ("path", "subject", "body"),
    [
        (
            "gitlab/issue__update_description",
            "The engine stalls",
            "(description: @octo-dev → @octo-dev and @octo.qa)\n\n@octo",
        ),
        ("gitlab/note__on_snippet", "boot", "what?"),
        ("gitlab/push__branch", "pushed to main of acme/space/rocket", "- bbbbbbbbbbbb Warm it\n"),
        ("gitlab/push__branch", "pushed to main of acme/space/rocket", "- and 2 more"),
        ("gitlab/tag_push__deleted", "deleted v1 of acme/space/rocket", "deleted v1"),
        ("gitlab/member__added", "", "user add to group"),
        ("jira/issue_updated__status", "The engine stalls", "- status: To Do → Done"),
        ("jira/issue_updated__status_with_comment", "The engine stalls", "Done, [~accountid:"),
        ("jira/comment_created__no_issue", "", "hm"),
        ("jira/sprint_closed__emoji", "", "sprint closed"),
        (
            "confluence/comment_created__connect",
            "Launch plan",
            "comment 99 created on page 4711 in OPS:",
        ),
        ("confluence/page_created__server", "", "page 4711 created (title unknown)"),
        ("plane/issue_created__assigned", "Checkout fails", "Steps…"),
        ("plane/issue_created__module_added", "Checkout fails", "issue updated (modules: (none)"),
        ("plane/issue_comment_created__mention", "", "hello"),
    ],
)
def test_subject_and_body_are_what_a_person_wants_to_read(
    path: str, subject: str, body: str
) -> None:
    read = vendors.read(path)
    assert read.subject == subject
    assert body in read.body


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("gitlab/issue__open", {"repo": "acme/space/rocket", "number": 7, "labels": ["bug"]}),
        ("gitlab/issue__open", {"timestamp": "2026-03-01T10:00:00Z", "hook": "Issue Hook"}),
        ("gitlab/issue__update_labels", {"label": ["urgent"], "changed": ["labels"]}),
        ("gitlab/merge_request__open", {"head": "warm", "base": "main", "reviewers": ["octo.qa"]}),
        ("gitlab/merge_request__update_commits", {"new_commits": True}),
        ("gitlab/note__confidential", {"confidential": True, "comment_id": 501}),
        ("gitlab/pipeline__failed", {"status": "failed", "branch": "warm"}),
        ("gitlab/tag_push__deleted", {"deleted": True, "tag": "v1"}),
        ("gitlab/project__renamed", {"renamed_from": "acme/missile", "repo": "acme/rocket"}),
        ("jira/issue_updated__labels", {"label": ["urgent"], "labels": ["engine", "urgent"]}),
        ("jira/issue_updated__status", {"project": "POC", "issue_type": "Bug", "priority": "High"}),
        ("jira/issue_updated__status", {"timestamp": "2026-03-01T10:00:00.123Z"}),
        ("jira/comment_created__cloud", {"url": "https://acme.atlassian.net/browse/POC-7"}),
        ("confluence/comment_created__forge_reply", {"in_reply_to": "98", "comment_id": "99"}),
        ("confluence/page_updated__id_beyond_numbers", {"page_id": "9007199254740993"}),
        ("plane/issue_updated__state", {"field": "state", "old_value": "Todo", "sequence": 3}),
        ("plane/v2_workitem_updated__constant", {"priority": None, "work_item": vendors.WORK}),
        ("plane/v2_page_comment_created", {"version": "v2", "access": None}),
    ],
)
def test_the_facts_are_in_the_metadata(path: str, facts: dict[str, object]) -> None:
    metadata = vendors.read(path).metadata
    assert {key: metadata.get(key) for key in facts} == facts


@pytest.mark.parametrize("vendor", vendors.VENDORS)
def test_the_guide_names_every_fact_of_the_metadata(vendor: str) -> None:
    guide = (ROOT / "docs/guide/sources.md").read_text()
    chapter = guide.split(f"\n## {TITLES[vendor]}\n")[1].split("\n## ")[0]
    stated = {key for each in vendors.own(vendor) for key in _metadata(each)}
    assert {key for key in stated if f"`{key}`" not in chapter} == set()


def test_the_guide_lists_exactly_what_gitlabs_followers_are_told() -> None:
    guide = (ROOT / "docs/guide/sources.md").read_text()
    table = guide.split("<!-- followed: gitlab -->")[1].split("\n\n")[0].splitlines()[3:]
    told: dict[str, frozenset[str]] = {}
    for row in table:
        events, actions, _ = (cell.strip() for cell in row.strip("|").split("|"))
        named = {"" if each == "(no action)" else each for each in actions.split(", ")}
        told |= {event.strip("`"): frozenset(named) for event in events.split(", ")}
    told["pipeline"] -= {"once it has ended"}
    assert told == dict(FOLLOWED)


def _metadata(given: Delivery) -> list[str]:
    [read] = parse(given.vendor, given.headers, given.body)
    assert isinstance(read, Notification)
    return list(read.metadata)
