"""Every payload of a folder, posted over HTTP to a real node: who is woken is counted outside.

The expectation comes from the payloads by a reading of this test's own, not from the router.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.harness import COMPANY, Company, comment, issue, until

SHARED = Path(
    os.environ.get(
        "CREWLET_WEBHOOK_DATA", Path(__file__).parents[2].parent / "shared" / "data" / "webhooks"
    )
)


@pytest.mark.certifies(16, 19, 113, 122, 124, 126, 131)
def test_addressed_seats_get_one_turn_each_and_nobody_else(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        dev, qa = {"login": "octo-dev"}, {"login": "octo-qa"}
        about = issue(1)["issue"]
        assigned = issue(1, action="assigned", assignee=dev, issue={**about, "assignees": [dev]})
        pull = {**about, "number": 2, "requested_reviewers": [qa], "merged": False}
        review = issue(2, action="review_requested", requested_reviewer=qa, pull_request=pull)
        review.pop("issue")
        assert node.post("issues", assigned) == 202
        assert node.post("pull_request", review) == 202
        assert node.post("issues", issue(3)) == 202  # addresses nobody
        assert node.post("issue_comment", comment(4, "@octo-boss what do you say?")) == 202
        until(lambda: len(company.lines("end")) == 2, why="two seats are woken")
        node.idle()
        until(lambda: len(node.events("inbound_delivery")) == 4, why="all four are routed")
        woken = Counter((row["seat"], row["key"]) for row in company.lines("start"))
        assert woken == {
            ("dev", "github:octo/site#1"): 1,
            ("qa", "github:octo/site#2"): 1,
        }
        skipped = node.events("notification_skipped")
        assert [row["reason"] for row in skipped] == ["recipient is human"]


@pytest.mark.certifies(79, 81, 87, 88)
def test_a_burst_on_one_conversation_is_one_more_turn(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        node.post("issue_comment", comment(1, "@octo-dev first"))
        node.send("dev", "sleep 1.5")
        until(lambda: _texts(company, "start", "sleep 1.5"), why="the seat is busy")
        for n in range(10):
            assert node.post("issue_comment", comment(7, f"@octo-dev number {n}")) == 202
        node.idle()
        turns = [row for row in company.lines("start", "dev") if row["key"].endswith("#7")]
        assert len(turns) <= 2, "a burst costs at most two turns"
        assert sum(len(row["events"]) for row in turns) == 10


def _texts(company: Company, kind: str, text: str) -> list[dict[str, Any]]:
    return [row for row in company.lines(kind) if row["text"] == text]


@pytest.mark.certifies(130)
@pytest.mark.field("C10")
def test_a_vendors_retry_and_a_redelivery_wake_a_seat_once(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        payload = comment(1, "@octo-dev once")
        assert node.post("issue_comment", payload, delivery="G1") == 202
        until(lambda: company.lines("end", "dev"), why="worked")
        assert node.post("issue_comment", payload, delivery="G1") == 202
        # G3: one event through two hooks of one secret, at the same moment.
        both = comment(3, "@octo-qa once")
        assert (
            node.post("issue_comment", both, delivery="G3", headers={"X-GitHub-Hook-ID": "1"})
            == 202
        )
        assert (
            node.post("issue_comment", both, delivery="G3", headers={"X-GitHub-Hook-ID": "2"})
            == 202
        )
        until(lambda: company.lines("end", "qa"), why="worked")
        node.idle()
        said = until(lambda: node.events("notification_skipped"), why="the repetition is recorded")
        assert "G1" in said[0]["detail"] and "dlq replay" in said[0]["detail"]
        node.stop()
        # G2: refused while the node was down; the vendor's redelivery finds it up.
        again = company.start()
        try:
            assert again.post("issue_comment", comment(2, "@octo-dev two"), delivery="G2") == 202
            until(lambda: len(company.lines("end", "dev")) == 2, why="G2 is worked")
            again.idle()
        finally:
            again.end()
    assert Counter(row["seat"] for row in company.lines("start")) == {"dev": 2, "qa": 1}


@pytest.mark.field("C13")
@pytest.mark.certifies(124)
def test_outside_logins_match_in_any_case(tmp_path: Path) -> None:
    company = Company(tmp_path)
    with company.running() as node:
        dev = {"login": "Octo-Dev"}
        assigned = issue(1, action="assigned", assignee=dev)
        assigned["issue"]["assignees"] = [dev]
        assert node.post("issues", assigned) == 202
        assert node.post("issue_comment", comment(2, "@OCTO-DEV look")) == 202
        pull = {**issue(3)["issue"], "requested_reviewers": [{"login": "ops-bot"}]}
        review = issue(3, action="review_requested", requested_reviewer={"login": "ops-bot"})
        review["pull_request"] = pull
        review.pop("issue")
        assert node.post("pull_request", review) == 202
        own = comment(4, "@octo-dev to myself", sender="OCTO-DEV")
        assert node.post("issue_comment", own) == 202
        bot = comment(5, "I did it", sender="ops-bot[bot]")
        assert node.post("issue_comment", bot) == 202
        until(lambda: len(company.lines("end")) == 3, why="three wakes")
        until(lambda: len(node.events("inbound_delivery")) == 5, why="all are routed")
        node.idle()
        woken = sorted((row["seat"], row["key"]) for row in company.lines("start"))
        assert woken == [
            ("dev", "github:octo/site#1"),
            ("dev", "github:octo/site#2"),
            ("ops", "github:octo/site#3"),
        ]


@pytest.mark.field("C31")
@pytest.mark.certifies(127, 129, 131)
def test_odd_but_legal_deliveries_are_taken_and_recorded(tmp_path: Path) -> None:
    company = Company(tmp_path)
    odd: list[tuple[str, object]] = [
        ("no_such_event", {"action": "x"}),
        ("ping", {"zen": "calm"}),
        ("issues", {}),
        ("issues", []),
        ("issues", 7),
        ("issues", issue(1, sender=None)),
        ("merge_group", {"action": "checks_requested", "merge_group": {}}),
    ]
    without_user = comment(2, "@octo-dev please")
    without_user["sender"] = without_user["comment"]["user"] = None
    odd.append(("issue_comment", without_user))
    with company.running() as node:
        for event, payload in odd:
            assert node.post(event, payload) == 202, (event, payload)
        assert node.post("issues", issue(3), secret="another") == 401
        assert node.post("issues", None, body=b"{nonsense") == 400
        until(lambda: company.lines("end", "dev"), why="the unknown sender's mention counts")
        until(lambda: len(node.events("inbound_delivery")) == len(odd), why="one record each")
        node.idle()
        assert len(company.lines("start")) == 1


@pytest.mark.certifies(110, 113, 118, 124, 130)
def test_every_public_payload_wakes_whom_it_says(tmp_path: Path) -> None:
    """The folder of real payloads: seats for three of the people in it; the count of turns
    follows from the table of expectations alone."""
    folder = SHARED / "github"
    if not folder.is_dir():
        pytest.skip(f"the folder of public payloads is not there: {folder}")
    rows = json.loads((SHARED / "expect.json").read_text())
    headers = json.loads((folder / "headers.json").read_text())
    people = {"codertocat": "dev", "octocat": "ops", "hacktocat": "qa"}
    text = COMPANY.replace("octo-dev", "Codertocat").replace("OPS-Bot", "octocat")
    company = Company(tmp_path, text.replace("octo-qa", "hacktocat"))
    expected = _expected({k: rows[f"github/{k}"] for k in sorted(headers)}, people)
    with company.running() as node:
        for number, name in enumerate(sorted(headers), start=1):
            body = (folder / name).read_bytes()
            kind = headers[name]["Content-Type"]
            if kind.startswith("application/x-www-form") and not body.startswith(b"payload="):
                body = b"payload=" + urllib.parse.quote_plus(body).encode()
            status = node.post(
                headers[name]["X-GitHub-Event"],
                None,
                body=body,
                delivery=headers[name]["X-GitHub-Delivery"],
                headers={"Content-Type": kind},
            )
            assert status == 202, name
            until(
                lambda number=number: len(node.events("inbound_delivery", last=9999)) == number,
                why=f"{name} is routed",
            )
        node.idle(60)
        woken: Counter[tuple[str, str]] = Counter()
        for row in company.lines("start"):
            woken[row["seat"], row["key"]] += len(row["events"])
    assert woken == expected


def _expected(rows: dict[str, Any], people: dict[str, str]) -> Counter[tuple[str, str]]:
    """Wakes per (seat, conversation), from the table: the addressed, then the followers that
    earlier rows made; never the sender."""
    followers: dict[str, list[str]] = {}
    wakes: Counter[tuple[str, str]] = Counter()
    for row in rows.values():
        if row["verdict"] not in ("WAKE", "FOLLOW") or not row["key"]:
            continue
        key = row["key"] if row["key"].startswith("github:") else f"github:{row['key']}"
        sender = people.get(row["sender"].split(" ")[0].lower())
        named = [people[a.lower()] for a in row["addressed"] if a.lower() in people]
        addressed = [s for s in named if s != sender] if row["verdict"] == "WAKE" else []
        meant = dict.fromkeys([*addressed, *followers.get(key, [])])
        for seat in meant:
            if seat != sender:
                wakes[seat, key] += 1
        followers[key] = list(dict.fromkeys([*followers.get(key, []), *addressed]))
    return wakes
