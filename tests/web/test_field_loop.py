"""Two agents that thank each other by way of a tracker: nothing there counts their depth."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from actors.admin import Caller
from crewlet.node.verbs import Desk, operations_of
from crewlet.turn import Turn
from tests.web.scene import Scene, play

COMPANY = """
name: Company T
notification_rate_limit: %d
roles:
  - {name: Boss, handle: boss, kind: human, contact: {github_login: octo-boss}}
  - {name: Dev, handle: dev, contact: {github_login: octo-dev}}
  - {name: QA, handle: qa, contact: {github_login: octo-qa}}
integrations:
  github: {secret: "${SECRET}"}
"""
OTHER = {"dev": "qa", "qa": "dev"}


def comment(by: str, number: int, called: str = "") -> dict[str, Any]:
    """A comment on the one issue; who is `called` is mentioned in it."""
    return {
        "action": "created",
        "repository": {"full_name": "octo/site"},
        "issue": {"number": 7, "title": "Thanks", "user": {"login": "octo-boss"}},
        "comment": {
            "id": number,
            "body": f"@octo-{called} thanks!",
            "user": {"login": f"octo-{by}"},
        },
        "sender": {"login": f"octo-{by}"},
    }


class Tracker:
    """A small GitHub: whatever a seat says in it comes back as a webhook."""

    def __init__(self) -> None:
        self.comments = 0

    async def say(self, scene: Scene, by: str, called: str) -> None:
        self.comments += 1
        number = self.comments
        status = await scene.signed(
            "github", comment(by, number, called), 0.0,
            x_github_event="issue_comment", x_github_delivery=f"g-{number}",
        )  # fmt: skip
        assert status == 202

    async def reply(self, scene: Scene, turn: Turn) -> None:
        await self.say(scene, turn.seat.handle, OTHER[turn.seat.handle])


async def asked(scene: Scene, verb: str, **args: object) -> list[dict[str, Any]]:
    verbs = Desk(scene.node, operations_of(scene.node)).verbs()
    rows = verbs[verb].start(Raw(msgspec.json.encode(args)), Caller(1000, "ann"))
    return [msgspec.json.decode(msgspec.json.encode(row)) async for row in rows]


def counted(scene: Scene) -> dict[str, int]:
    return {seat: sum(turn[0] == seat for turn in scene.turns) for seat in OTHER}


@pytest.mark.field("C43")
@pytest.mark.certifies(147)
def test_a_loop_outside_is_seen_and_one_command_ends_it_without_losing_mail() -> None:
    tracker = Tracker()

    async def test(scene: Scene) -> None:
        await tracker.say(scene, "boss", "dev")
        await asyncio.sleep(300)
        assert min(counted(scene).values()) >= 20, "nothing ends it by itself"
        found = {row["code"]: row["text"] for row in await asked(scene, "why", handle="dev")}
        assert "qa and it wake each other" in found["loop"]
        assert "crewlet seat pause dev" in found["loop"]
        [look] = await asked(scene, "top")
        wakers = {row["handle"]: row["waker"] for row in look["busiest"]}
        assert OTHER.items() >= wakers.items() and wakers
        assert all(row["turns_per_minute"] > 0 for row in look["busiest"])

        await asked(scene, "seat.pause", handle="dev")
        await asyncio.sleep(60)
        before = counted(scene)
        await asyncio.sleep(600)
        assert counted(scene) == before, "it stands still"
        assert all(row["code"] != "loop" for row in await asked(scene, "why", handle="dev"))
        await tracker.say(scene, "boss", "qa")
        await asyncio.sleep(60)
        assert counted(scene)["qa"] == before["qa"] + 1, "others are served"

        await asked(scene, "seat.resume", handle="dev")
        await asyncio.sleep(60)
        assert counted(scene)["dev"] > before["dev"], "what waited is worked: nothing was lost"

    play(COMPANY % 0, test, turn_s=4.0, reply=tracker.reply)


@pytest.mark.field("C43")
@pytest.mark.certifies(109)
def test_a_limit_skips_the_rest_and_leaves_the_seat_to_others() -> None:
    """Turns that take no time: only the limit is in their way."""
    tracker = Tracker()

    async def twice(scene: Scene, turn: Turn) -> None:
        """Each answers with two comments: it grows."""
        if tracker.comments < 500:
            await tracker.reply(scene, turn)
            await tracker.reply(scene, turn)

    async def test(scene: Scene) -> None:
        await tracker.say(scene, "boss", "dev")
        await asyncio.sleep(30)
        assert "rate limit exceeded" in scene.skips()
        handed = len(scene.turns)
        await tracker.say(scene, "boss", "dev")
        await asyncio.sleep(30)
        assert len(scene.turns) > handed

    play(COMPANY % 1, test, turn_s=0.1, reply=twice)
