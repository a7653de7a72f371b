"""GitHub's payloads: event, conversation, sender, addressed, verdict, and what is said of them."""

from __future__ import annotations

import json

import github_payloads as own
import pytest

from crewlet.sources import Notification, Skip, parse
from crewlet.sources.github_rules import FOLLOWED
from crewlet.sources.phrases import PARSER_REFUSED

SHARED_ROWS = own.expected(own.SHARED, "github/") if own.SHARED.is_dir() else {}


@pytest.mark.certifies(110, 113, 117, 118, 119)
@pytest.mark.parametrize("name", own.own_names())
def test_own_payload_is_read_as_expected(name: str) -> None:
    row = own.expected(own.OWN)[name]
    own.assert_as_expected(own.headers(own.event_of(name)), own.body(name), row)


@pytest.mark.certifies(110, 113)
@pytest.mark.parametrize("name", SHARED_ROWS or [pytest.param("", id="no-shared-data")])
def test_shared_payload_is_read_as_expected(name: str) -> None:
    if not name:
        pytest.skip(f"no shared webhook data at {own.SHARED}; set CREWLET_WEBHOOK_DATA")
    folder = own.SHARED / "github"
    sent = json.loads((folder / "headers.json").read_text())[name]
    own.assert_as_expected(sent, (folder / name).read_bytes(), SHARED_ROWS[name])


def test_every_shared_payload_has_a_row() -> None:
    if not SHARED_ROWS:
        pytest.skip(f"no shared webhook data at {own.SHARED}; set CREWLET_WEBHOOK_DATA")
    files = {path.name for path in (own.SHARED / "github").iterdir()} - {"headers.json"}
    assert files == set(SHARED_ROWS)


def test_every_own_payload_has_a_row() -> None:
    assert own.own_names() == sorted(own.expected(own.OWN))


@pytest.mark.field("C31")
@pytest.mark.parametrize("sender", [None, {}, [], 7, {"login": None}, {"login": ""}, "absent"])
def test_a_payload_without_a_sender_is_from_unknown(sender: object) -> None:
    value = {**own.payload("issue_comment__created.json"), "sender": sender}
    if sender == "absent":
        del value["sender"]
    assert own.read("issue_comment", value).sender == "unknown"


@pytest.mark.field("C31")
@pytest.mark.parametrize(
    ("value", "said"),
    [({}, "an empty object"), ([], "an array"), (7, "a number"), (None, "null"), ("x", "a text")],
)
def test_json_that_is_no_filled_object_is_a_skip_with_its_reason(value: object, said: str) -> None:
    [skip] = parse("github", own.headers("issues"), json.dumps(value).encode())
    assert isinstance(skip, Skip)
    assert skip.reason == PARSER_REFUSED
    assert said in skip.detail


@pytest.mark.parametrize("event", ["", "Issues", "a b", "issues\n x", "../etc", "x" * 65, "é"])
def test_a_delivery_without_a_proper_event_name_is_a_skip(event: str) -> None:
    [skip] = parse("github", own.headers(event), b'{"action": "opened"}')
    assert isinstance(skip, Skip)
    assert (skip.reason, skip.event_type) == (PARSER_REFUSED, "")


@pytest.mark.parametrize("number", [None, 0, -1, True, 1.5, "7", 2**53, []])
def test_a_conversation_that_cannot_be_named_is_never_filed_under_an_empty_key(
    number: object,
) -> None:
    value = own.payload("issues__opened.json")
    value["issue"]["number"] = number
    [skip] = parse("github", own.headers("issues"), json.dumps(value).encode())
    assert isinstance(skip, Skip)
    assert (skip.event_type, skip.reason) == ("issues.opened", PARSER_REFUSED)


@pytest.mark.parametrize("full_name", ["", "rocket", "a/b/c", "a b/c", "acme/ro\u0000ket", "é/x"])
def test_a_repository_name_that_is_none_makes_no_key(full_name: str) -> None:
    value = own.payload("issues__opened.json")
    value["repository"] = {"full_name": full_name}
    [skip] = parse("github", own.headers("issues"), json.dumps(value).encode())
    assert isinstance(skip, Skip)


def test_the_repository_is_put_together_where_its_full_name_is_missing() -> None:
    value = own.payload("issues__opened.json")
    del value["repository"]["full_name"]
    assert own.read("issues", value).partition_key == "github:acme/rocket#7"


@pytest.mark.field("C13")
def test_the_sender_is_taken_out_of_the_addressed_whatever_its_case() -> None:
    read = own.notify("issues__assigned_to_self.json")
    assert (read.addressed, read.verdict) == ((), "follow")


def test_a_check_of_two_pull_requests_concerns_both_conversations() -> None:
    value = own.payload("check_run__completed.json")
    value["check_run"]["pull_requests"] = [{"number": 9}, {"number": 10}, {"number": 9}]
    read = parse("github", own.headers("check_run"), json.dumps(value).encode())
    assert [one.partition_key for one in read if isinstance(one, Notification)] == [
        "github:acme/rocket#9",
        "github:acme/rocket#10",
    ]
    assert [one.metadata["number"] for one in read if isinstance(one, Notification)] == [9, 10]


def test_an_edit_that_names_nobody_new_addresses_nobody() -> None:
    value = own.payload("issues__edited_new_mention.json")
    value["changes"] = {"body": {"from": "OCTO-DEV? @Octo-Dev!"}}
    value["issue"]["body"] = "please, @octo-dev"
    assert own.read("issues", value).addressed == ()


def test_an_edit_of_the_title_only_addresses_nobody() -> None:
    value = own.payload("issues__edited_new_mention.json")
    value["changes"] = {"title": {"from": "x"}}
    assert own.read("issues", value).addressed == ()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("issues__opened.json", {"repo": "acme/rocket", "number": 7, "labels": ["bug", "P1"]}),
        ("issues__opened.json", {"action": "opened", "event": "issues", "is_pull_request": False}),
        ("issues__labeled.json", {"label": "urgent", "labels": ["bug", "urgent"]}),
        ("issues__closed_not_planned.json", {"state": "closed", "state_reason": "not_planned"}),
        ("issues__transferred.json", {"moved_to": "github:acme/engine#3"}),
        ("repository__renamed.json", {"renamed_from": "acme/missile"}),
        ("issue_comment__on_pull_request.json", {"is_pull_request": True, "number": 9}),
        ("issue_comment__by_bot.json", {"sender_type": "Bot"}),
        ("issue_comment__created.json", {"timestamp": "2026-03-01T10:00:00Z", "comment_id": 501}),
        ("pull_request__opened.json", {"head": "warm", "base": "main", "draft": False}),
        ("pull_request__review_requested_team.json", {"team": "core"}),
        ("pull_request__closed_merged.json", {"merged": True}),
        ("pull_request_review__submitted.json", {"review_state": "changes_requested"}),
        ("pull_request_review_comment__created.json", {"path": "engine.py", "line": 12}),
        ("check_run__completed.json", {"conclusion": "failure", "branch": "warm", "number": 9}),
        ("push__branch.json", {"branch": "main", "ref": "refs/heads/main", "deleted": False}),
        ("merge_group__checks_requested.json", {"queued_pull_request": 9}),
        ("release__published.json", {"tag": "v1.0"}),
    ],
)
def test_the_facts_are_in_the_metadata(name: str, facts: dict[str, object]) -> None:
    metadata = own.notify(name).metadata
    assert {key: metadata.get(key) for key in facts} == facts


@pytest.mark.parametrize(
    ("name", "subject", "body"),
    [
        (
            "issues__assigned.json",
            "The engine stalls",
            "issue assigned in acme/rocket#7 (assignee: Octo-Dev)\n\nIt stalls on a cold start.",
        ),
        ("issue_comment__by_bot.json", "The engine stalls", "Coverage fell. @octo-dev"),
        ("issue_comment__deleted.json", "The engine stalls", "issue comment deleted in"),
        ("pull_request__opened.json", "Warm the engine", "pull request opened in acme/rocket#9"),
        ("pull_request__closed_merged.json", "Warm the engine", "(merged)"),
        ("pull_request_review__submitted.json", "Warm the engine", "Review: changes requested"),
        ("issues__labeled.json", "The engine stalls", "(label: urgent)"),
        (
            "pull_request_review_comment__created.json",
            "Warm the engine",
            "On engine.py, line 12:\n\nWhy here? @ops-bot",
        ),
        ("check_run__completed.json", "", "(check: tests, conclusion: failure)"),
        ("push__branch.json", "pushed to main of acme/rocket", "- bbbbbbbbbbbb Warm it"),
        ("release__published.json", "1.0", "Flies."),
        ("ping__organization.json", "", "ping in acme"),
    ],
)
def test_subject_and_body_are_what_a_person_wants_to_read(
    name: str, subject: str, body: str
) -> None:
    read = own.notify(name)
    assert read.subject == subject
    assert body in read.body


@pytest.mark.parametrize(
    ("name", "lead"),
    [
        ("issues__opened.json", ""),
        ("issues__edited_new_mention.json", ""),
        ("issue_comment__created.json", ""),
        ("pull_request_review__submitted.json", ""),
        ("issues__assigned.json", "issue assigned in acme/rocket#7 (assignee: Octo-Dev)"),
        ("issues__labeled.json", "issue labeled in acme/rocket#7 (label: urgent)"),
        (
            "check_run__completed.json",
            "check run completed in acme/rocket#9 (check: tests, conclusion: failure)",
        ),
    ],
)
def test_what_goes_stale_has_a_lead_and_what_was_said_has_none(name: str, lead: str) -> None:
    assert own.notify(name).lead == lead


def test_an_edit_of_the_title_alone_says_so_and_not_the_text_again() -> None:
    value = own.payload("issues__edited_new_mention.json")
    value["changes"] = {"title": {"from": "It stalls"}}
    told = "issue edited in acme/rocket#7 (old title: It stalls)"
    assert own.read("issues", value).body == told
    value["changes"]["body"] = {"from": "hm"}
    assert own.read("issues", value).body == "ask @lead or @octo-dev"


def test_no_secret_of_a_hook_is_carried_along() -> None:
    value = own.payload("ping__organization.json")
    value["hook"]["config"]["secret"] = "hunter2"
    assert "hunter2" not in repr(own.read("ping", value))


def test_a_long_push_lists_twenty_commits_and_counts_the_rest() -> None:
    value = own.payload("push__branch.json")
    value["commits"] = [{"id": f"{n:040x}", "message": f"step {n}\n\nmore"} for n in range(150)]
    lines = own.read("push", value).body.splitlines()
    assert (len(lines), lines[1][-6:], lines[-1]) == (22, "step 0", "- and 130 more")


def test_the_guide_lists_exactly_what_followers_are_told() -> None:
    guide = (own.ROOT / "docs/guide/sources.md").read_text()
    table = guide.split("<!-- followed -->")[1].split("\n\n")[0].splitlines()[3:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    told = {event.strip("`"): frozenset(actions.split(", ")) for event, actions, _ in cells}
    assert told == dict(FOLLOWED)


def test_the_guide_names_every_fact_of_the_metadata() -> None:
    guide = (own.ROOT / "docs/guide/sources.md").read_text()
    stated = {key for name in own.own_names() for key in own.notify(name).metadata}
    assert {key for key in stated if f"`{key}`" not in guide} == set()
