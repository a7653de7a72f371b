"""Trackers and their oddities, as field reports tell them: one comment in two deliveries, events
that nobody planned for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.web.scene import Scene
from tests.web.scene import play as play_company

DEV, BOSS, ITEM = (
    f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "123"
)

COMPANY = f"""
name: Company T
roles:
  - {{name: Dev, handle: dev, contact: {{atlassian_account_id: adev, plane_user_id: {DEV}}}}}
  - {{name: Ops, handle: ops, contact: {{atlassian_account_id: aops}}}}
integrations:
  jira: {{secret: "${{SECRET}}"}}
  confluence: {{secret: "${{SECRET}}"}}
  plane: {{secret: "${{SECRET}}"}}
  gitlab: {{secret: "${{SECRET}}"}}
"""

ISSUE = {
    "id": "10013",
    "key": "POC-7",
    "fields": {"summary": "It breaks", "assignee": {"accountId": "adev"}},
}
COMMENT = {
    "self": "https://jira.example/rest/api/2/issue/10013/comment/10100",
    "id": "10100",
    "author": {"accountId": "aboss"},
    "updateAuthor": {"accountId": "aboss"},
    "body": "[~accountid:adev] what is left?",
    "created": "2026-03-01T10:00:00.000+0000",
    "updated": "2026-03-01T10:00:00.000+0000",
}
BARE = {"timestamp": 1, "webhookEvent": "comment_created", "comment": COMMENT}
UPDATED = {
    "timestamp": 1,
    "webhookEvent": "jira:issue_updated",
    "issue_event_type_name": "issue_commented",
    "user": {"accountId": "aboss"},
    "issue": ISSUE,
    "comment": COMMENT,
}
CLOUD = {**BARE, "issue": ISSUE}
MOVED = {
    **UPDATED,
    "issue_event_type_name": "issue_generic",
    "changelog": {"items": [{"field": "status", "fromString": "To Do", "toString": "Done"}]},
}


def play(test: Callable[[Scene], Awaitable[None]], *, turn_s: float = 0.0) -> None:
    play_company(COMPANY, test, turn_s=turn_s)


@pytest.mark.field("C20")
@pytest.mark.certifies(111, 130)
@pytest.mark.parametrize(
    ("deliveries", "wait_s"),
    [
        ((BARE, UPDATED), 0.1),
        ((UPDATED, BARE), 0.1),
        ((BARE, UPDATED), 5.0),
        ((UPDATED, CLOUD), 5.0),
        ((CLOUD, UPDATED), 60.0),
        ((CLOUD,), 0.1),
        ((MOVED, BARE), 5.0),
        ((MOVED, CLOUD), 60.0),
    ],
)
def test_one_comment_in_two_deliveries_is_one_turn(
    deliveries: tuple[dict[str, Any], ...], wait_s: float
) -> None:
    """In either order, while the turn runs or long after it."""

    async def test(scene: Scene) -> None:
        for delivery in deliveries:
            assert await scene.signed("jira", delivery, wait_s) == 202
        await scene.signed("jira", {"webhookEvent": "nothing_known"}, 60.0)
        assert [(seat, key) for seat, key, _ in scene.turns] == [("dev", "jira:POC-7")]
        assert "what is left?" in scene.turns[0][2]
        assert scene.deliveries() == len(deliveries) + 1, "one record each"

    play(test, turn_s=20.0)


@pytest.mark.field("C20")
def test_who_comments_is_not_woken() -> None:
    async def test(scene: Scene) -> None:
        own = {**COMMENT, "author": {"accountId": "adev"}, "updateAuthor": {"accountId": "adev"}}
        await scene.signed("jira", {**CLOUD, "comment": own})
        await scene.signed("jira", {**UPDATED, "comment": own, "user": {"accountId": "adev"}})
        assert scene.turns == []

    play(test)


@pytest.mark.field("C20")
@pytest.mark.certifies(114)
def test_one_comment_in_plane_that_comes_twice_is_one_turn() -> None:
    """Two deliveries of their own ids, which differ in the field of their activity only."""

    def comment(field: str) -> dict[str, Any]:
        called = f'<mention-component entity_identifier="{DEV}" entity_name="user_mention">'
        return {
            "event": "issue_comment",
            "action": "created",
            "data": {
                "id": "d1197731-0000-57b2-ab46-3ec95f48e3ca",
                "comment_html": f"<p>{called}</mention-component> hello</p>",
                "comment_stripped": "hello",
                "issue": ITEM,
                "actor": BOSS,
            },
            "activity": {"field": field, "actor": {"id": BOSS, "display_name": "boss"}},
        }

    async def test(scene: Scene) -> None:
        await scene.signed("plane", comment("comment"), 1.0, x_plane_delivery="p-1")
        await scene.signed("plane", comment("description"), 60.0, x_plane_delivery="p-2")
        assert scene.turns == [("dev", f"plane:{ITEM}", "hello")]

    play(test, turn_s=20.0)


ODD: list[object] = [
    {"webhookEvent": "jira:starship_launched"},
    {"event": "starship", "action": "launched"},
    {"webhookEvent": "comment_created", "comment": None, "user": None},
    {"webhookEvent": "jira:issue_updated", "issue": None},
    {"event": "issue_comment", "action": "created", "data": None},
    {"event": "page_created", "page": {"id": None}, "userAccountId": None},
    {},
    [],
    7,
]


@pytest.mark.field("C31")
@pytest.mark.certifies(127)
@pytest.mark.parametrize("vendor", ["jira", "confluence", "plane"])
def test_odd_but_legal_deliveries_are_taken_and_leave_one_record_each(vendor: str) -> None:
    async def test(scene: Scene) -> None:
        for number, value in enumerate(ODD):
            key = {
                "x_plane_delivery": f"p-{number}",
                "x_atlassian_webhook_identifier": f"a-{number}",
            }
            assert await scene.signed(vendor, value, 1.0, **key) == 202, value
        assert scene.turns == []
        assert scene.deliveries() == len(ODD)
        headers = {"x-hub-signature": "sha256=00", "x-plane-signature": "00"}
        assert await scene.post(vendor, b"{}", headers) == 401

    play(test)
