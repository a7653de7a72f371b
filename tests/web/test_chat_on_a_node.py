"""From a chat's delivery to the turn of the seat it addresses: a whole node on the twin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crewlet import topics
from crewlet.events import Event, Trace
from crewlet.events.types import RawWebhook
from tests.web.scene import SECRET, Scene
from tests.web.scene import play as play_company

COMPANY = """
name: Company C
roles:
  - {name: Dev, handle: dev, contact: {slack_user_id: UDEV, mattermost_user_id: udev}}
  - {name: Ops, handle: ops, email: ops@octo.example, contact: {slack_user_id: UOPS}}
integrations:
  slack: {secret: "${SECRET}"}
  mattermost: {secret: "${SECRET}"}
  generic:
    deploys: {secret: "${SECRET}", header: X-Token, verify: token, event: kind, addressed: to}
routes:
  - {event: mattermost/outgoing_webhook, to: ops}
"""


def play(test: Callable[[Scene], Awaitable[None]]) -> None:
    play_company(COMPANY, test)


MESSAGE = {
    "type": "message",
    "user": "UANN",
    "text": "<@UDEV> look",
    "ts": "1772359200.000100",
    "channel": "C1",
    "channel_type": "channel",
}


@pytest.mark.field("C25")
@pytest.mark.certifies(115, 130)
def test_a_mention_in_slack_wakes_the_seat_once_and_followers_hear_the_thread() -> None:
    async def test(scene: Scene) -> None:
        assert await scene.slack(MESSAGE) == 202
        assert await scene.slack(MESSAGE) == 202  # Slack's own retry
        key = "slack:C1:1772359200.000100"
        assert scene.turns == [("dev", key, "<@UDEV> look")]
        reply = {**MESSAGE, "text": "and?", "ts": "1772359300.0001", "thread_ts": MESSAGE["ts"]}
        files = [{"name": "shot.png", "mimetype": "image/png"}]
        await scene.slack({**reply, "subtype": "file_share", "files": files}, "Ev2")
        assert scene.turns[1:] == [("dev", key, "and?\n[file] shot.png (image/png)")]

    play(test)


@pytest.mark.certifies(128)
@pytest.mark.parametrize(
    "change",
    [
        {"text": "to nobody"},
        {"subtype": "bot_message", "bot_id": "B1"},
        {"subtype": "channel_join"},
        {"subtype": "message_deleted", "deleted_ts": "1772359200.000100"},
        {"user": "UDEV", "text": "my own <@UDEV>"},
    ],
)
def test_what_a_chat_leaves_out_wakes_nobody_and_is_no_skip(change: dict[str, str]) -> None:
    async def test(scene: Scene) -> None:
        assert await scene.slack({**MESSAGE, **change}) == 202
        assert (scene.turns, scene.skips()) == ([], [])

    play(test)


def test_an_outgoing_webhook_wakes_who_a_route_names_and_its_token_is_not_stored() -> None:
    async def test(scene: Scene) -> None:
        stored: list[RawWebhook] = []
        publish = scene.node.queue.publish

        async def spied(topic: str, event: Event, **options: Any) -> Any:
            if topic == topics.INBOUND:
                stored.append(event.read(RawWebhook))
            return await publish(topic, event, **options)

        scene.node.queue.publish = spied  # type: ignore[method-assign,assignment]
        hook = {"channel_id": "c1", "post_id": "p1", "user_id": "u1", "text": "deploy"}
        body = json.dumps({"token": SECRET, **hook}).encode()
        assert await scene.post("mattermost", body, {}) == 202
        assert scene.turns == [("ops", "mattermost:c1:p1", "deploy")]
        [raw] = stored
        assert SECRET.encode() not in raw.body
        assert json.loads(raw.body)["text"] == "deploy"

    play(test)


@pytest.mark.certifies(124)
def test_a_sender_of_ones_own_finds_seats_by_handle_and_mail() -> None:
    async def test(scene: Scene) -> None:
        body = b'{"kind": "failed", "to": ["OPS@octo.example", "dev"]}'
        assert await scene.post("generic/deploys", body, {"x-token": "wrong"}) == 401
        assert await scene.post("generic/deploys", body, {"x-token": SECRET}) == 202
        assert sorted(handle for handle, _, _ in scene.turns) == ["dev", "ops"]
        assert await scene.post("generic/deploys", b"{}", {"x-token": SECRET}) == 202
        assert scene.skips() == ["parser refused"]

    play(test)


@pytest.mark.certifies(130)
def test_a_post_that_two_nodes_heard_is_worked_once_and_is_no_skip() -> None:
    async def test(scene: Scene) -> None:
        post = {"id": "p1", "channel_id": "d1", "user_id": "uann", "message": "hi", "type": ""}
        data = {
            "post": json.dumps(post),
            "channel_type": "D",
            "channel_name": "udev__uann",
        }
        frame = json.dumps({"event": "posted", "data": data, "seq": 3}).encode()
        heard = [
            await scene.node.edge.hear("mattermost", {}, frame, Trace.joined(None))
            for _ in range(2)
        ]
        await asyncio.sleep(5)
        assert heard == [True, False]
        assert scene.turns == [("dev", "mattermost:d1", "hi")]
        assert scene.skips() == []

    play(test)
