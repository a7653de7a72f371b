"""A whole node on the twin and virtual time, and vendors that tell it of what people say."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.company import Company, NodeIdentity, NodeSettings, parse_company
from crewlet.events import Event, Trace, decode
from crewlet.events import catalogue as types
from crewlet.node import Node
from crewlet.turn import Turn

COMPANY = """
name: Company T
notification_coalesce_max_batch: 20
roles:
  - {name: Boss, handle: boss, kind: human}
  - name: Dev
    handle: dev
    contact: {github_login: octo-dev, slack_user_id: UDEV}
"""

Work = Callable[[Turn], Awaitable[Any]]


class Talk:
    """A node, the turns that it worked, and what is said to it. Handlers are given by `work`."""

    def __init__(self, broker: MemoryBroker, company: Company) -> None:
        self.broker = broker
        self.company = company
        self.turns: list[Turn] = []
        self.began: list[float] = []
        self.work: Work = done
        self.node = self._made("n1")
        self._said = 0

    def _made(self, id: str) -> Node:
        return Node(
            self.company,
            turn=self._worked,
            settings=NodeSettings(node=NodeIdentity(id=id)),
            broker=self.broker.client(id),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )

    async def _worked(self, turn: Turn) -> Any:
        self.turns.append(turn)
        self.began.append(self.now)
        return await self.work(turn)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def comment(self, number: int, text: str, *, by: str = "ann") -> None:
        """Somebody calls dev in a comment on GitHub's issue `number`."""
        self._said += 1
        headers = {
            "content-type": "application/json",
            "x-github-event": "issue_comment",
            "x-github-delivery": f"d{self._said}",
        }
        person = {"login": by, "type": "User"}
        payload = {
            "action": "created",
            "issue": {"number": number, "title": f"Issue {number}", "user": person},
            "comment": {"id": self._said, "body": f"@octo-dev {text}", "user": person},
            "repository": {"full_name": "acme/rocket"},
            "sender": person,
        }
        body = json.dumps(payload).encode()
        assert await self.node.edge.hear("github", headers, body, Trace.root())

    async def chat(self, ts: str, text: str, *, thread: str = "1718.001") -> str:
        """Somebody calls dev in a thread of Slack's channel C9; the message's identity."""
        event = {
            "type": "message",
            "channel": "C9",
            "channel_type": "channel",
            "user": "UANN",
            "text": f"<@UDEV> {text}",
            "ts": ts,
            "thread_ts": thread,
        }
        payload = {"type": "event_callback", "event_id": f"Ev{ts}", "event": event}
        headers = {"content-type": "application/json"}
        body = json.dumps(payload).encode()
        assert await self.node.edge.hear("slack", headers, body, Trace.root())
        return f"slack:C9:{ts}"

    async def recorded(self, event_type: str) -> list[Event]:
        await self.node.queue.flush(5.0)
        found = await self.node.broker.recent(topics.event(event_type), 5000)
        return [decode(body) for _, body in found]

    async def waiting(self) -> int:
        """Messages that wait for dev or are in somebody's hands."""
        (state,) = await self.node.broker.list(topics.inbox("dev"))
        return state.waiting + state.in_flight

    async def outcomes(self) -> dict[str, list[str]]:
        """How the turns of each event ended, as the record has it."""
        found: dict[str, list[str]] = defaultdict(list)
        for event in await self.recorded(types.AGENT_TURN_COMPLETED):
            for trigger in event.value("triggers", tuple[str, ...], ()):
                found[trigger].append(event.value("outcome", str, ""))
        return found

    async def moved(self, id: str) -> None:
        """The node leaves, and another one comes."""
        await self.node.stop()
        self.node = self._made(id)
        await self.node.start()


async def done(_: Turn) -> str:
    return "done"


def talking(play: Callable[[Talk], Awaitable[None]], company: str = COMPANY) -> None:
    async def main() -> None:
        talk = Talk(MemoryBroker(), parse_company(company))
        await talk.node.start()
        try:
            await play(talk)
        finally:
            await talk.node.stop()

    run_virtual(main)
