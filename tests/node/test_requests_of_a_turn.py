"""What one webhook costs at a real broker until its turn is settled: every request is named here.

Each write is synced before it is answered, and a machine's disk does so many a second: a new line
in these lists is a turn that takes longer, for every company.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from crewlet import Node, topics
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.settings import StreamSettings
from crewlet.broker.wire import Wire
from crewlet.company import NodeSettings, parse_company
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.turn import Turn
from tests.broker.real import until

COMPANY: Final = """
name: Company T
integrations: {github: {secret: "${T_SECRET}"}}
roles:
  - {name: Dev, handle: dev, contact: {github_login: octo-dev}}
"""

PULLS: Final = "$JS.API.CONSUMER.MSG.NEXT."
READS: Final = "$JS.API.STREAM.MSG.GET."
ACKS: Final = "$JS.ACK."
KEYS: Final = "$KV.crewlet_"

READ: Final = Counter(
    {
        "claims": 1,  # was the delivery routed before?
        "followers": 1,  # who is in the conversation?
        "ledger": 2,  # was it worked before? and is the row there, now that it is written?
    }
)
WRITTEN: Final = Counter(
    {
        topics.INBOUND: 1,
        topics.inbox("dev"): 1,
        topics.event(types.INBOUND_DELIVERY): 1,
        "claims": 1,
        topics.event(types.AGENT_TURN_STARTED): 1,
        "ledger": 1,
        topics.event(types.AGENT_TURN_COMPLETED): 1,
        topics.reflect("dev"): 1,
    }
)
JOINED: Final = Counter({"followers": 1})

BESIDE: Final = frozenset({"leases", "status", "config", "seats", "schedules"})
"""What a node goes on doing whether or not there is mail."""


class Counted:
    """Everything that a wire sends, by what it is and of what."""

    def __init__(self, wire: Wire) -> None:
        self.read: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.said = 0
        send, send_soon = wire.send, wire.send_soon

        def sent(
            subject: str,
            body: bytes = b"",
            reply: str = "",
            headers: Mapping[str, str] | None = None,
        ) -> bytes:
            self._count(subject, body)
            return send(subject, body, reply, headers)

        def sent_soon(messages: Iterable[tuple[str, bytes]]) -> None:
            listed = list(messages)
            self.said += len(listed)
            send_soon(listed)

        wire.send = sent  # type: ignore[method-assign]
        wire.send_soon = sent_soon  # type: ignore[method-assign]

    def clear(self) -> None:
        self.read.clear()
        self.written.clear()
        self.said = 0

    def _count(self, subject: str, body: bytes) -> None:
        if subject.startswith(PULLS):
            return
        if subject.startswith(READS):
            self._add(self.read, _bucket(json.loads(body)["last_by_subj"]))
        elif subject.startswith(KEYS):
            self._add(self.written, _bucket(subject))
        else:
            self._add(self.written, subject)

    def _add(self, to: Counter[str], of: str) -> None:
        if of not in BESIDE:
            to[of] += 1


def _bucket(subject: str) -> str:
    return subject.removeprefix(KEYS).removeprefix("ownership.").partition(".")[0]


def issue(number: int) -> bytes:
    person = {"login": "visitor"}
    about = {"number": number, "title": "t", "body": "b", "user": person, "labels": []}
    return json.dumps(
        {
            "action": "assigned",
            "issue": {**about, "assignees": [{"login": "octo-dev"}]},
            "assignee": {"login": "octo-dev"},
            "repository": {"full_name": "o/s", "name": "s", "owner": {"login": "o"}},
            "sender": person,
        }
    ).encode()


class Worked:
    """A node that counts, and how many of its turns are settled."""

    def __init__(self, node: Node, counted: Counted) -> None:
        self._node = node
        self.counted = counted

    async def settle(self, delivery: str, number: int) -> None:
        """One webhook, until nothing of it is left to be said: three acknowledgements - of the
        delivery, of the wake and of what goes to reflection - are the last of it."""
        self.counted.clear()
        headers = {"x-github-event": "issues", "x-github-delivery": delivery}
        await self._node.edge.accept("github", headers, issue(number), Trace.root())
        await until(lambda: self.counted.said == 3, 30.0)


@pytest.mark.certifies(27)
def test_a_webhook_and_its_turn_are_these_requests_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_SECRET", "only for tests, and long")

    async def reflect(_: Event) -> None:
        return None

    async def work(_: Turn) -> str:
        return "done"

    async def main() -> None:
        settings = NodeSettings(stream=StreamSettings(store_dir=""))
        node = Node(
            parse_company(COMPANY),
            turn=work,
            reflect=reflect,
            settings=settings,
            data=tmp_path,
            web=False,
            admin=False,
        )
        async with node:
            assert isinstance(node.broker, JetStreamBroker)
            worked = Worked(node, Counted(node.broker._wire))
            await worked.settle("d1", 1)  # from now on it is known which mailboxes there are
            await worked.settle("d2", 2)
            assert worked.counted.written == WRITTEN + JOINED
            assert worked.counted.read == READ
            await worked.settle("d3", 2)  # in a conversation that it is in already
            assert worked.counted.written == WRITTEN
            assert worked.counted.read == READ

    asyncio.run(main())
