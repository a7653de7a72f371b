"""How long do a company's mailboxes take to be made, and how long when all are there?

The limit is a bare loop of create requests at the same concurrency, on a server of its own.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from actors.delivery import Mailbox
from benchmarks.place import Place, open_place
from benchmarks.report import Report
from crewlet import topics
from crewlet.broker import names
from crewlet.broker.api import Api
from crewlet.broker.dial import Address
from crewlet.broker.settings import EVENT_RETENTION_HOURS
from crewlet.broker.topology import Topology
from crewlet.broker.wire import Wire
from crewlet.company import Company, parse_company
from crewlet.node.mailboxes import CONCURRENCY, ensure_mailboxes

ANSWER_S: Final = 30.0
SECRET: Final = "BENCHMARK_SECRET"
NOWHERE: Final = Address(servers=())


async def measure(report: Report, *, seats: int, rounds: int) -> None:
    """Three mailboxes a seat and the router's; each round on new servers."""
    handles = [seat.handle for seat in company_of(seats).agents()]
    boxes = (topics.inbox_of, topics.control_of, topics.reflect_of)
    wanted = [topics.inbound(), *(box(handle) for box in boxes for handle in handles)]
    bare: list[float] = []
    first: list[float] = []
    again: list[float] = []
    for turn in range(rounds):
        for kind in (0, 1) if turn % 2 == 0 else (1, 0):
            async with open_place(sync="always") as place:
                if kind == 0:
                    bare.append(await _bare(place, wanted))
                else:
                    first.append(await _ensured(place, wanted))
                    again.append(await _ensured(place, wanted))
    subject = f"{len(wanted)} mailboxes"
    ratios = [mine / limit for mine, limit in zip(first, bare, strict=True)]
    report.add("bare create loop", subject, "s", median(bare), 1.0)
    report.add("ensure, none is there", subject, "s", median(first), median(ratios))
    report.add("ensure, all are there", subject, "s", median(again))


def company_of(seats: int, secret: str = "") -> Company:
    """The seats `s0`, `s1`, ..., known to GitHub by the same names where its `secret` is stated."""
    hooks = f"integrations:\n  github: {{secret: '${{{SECRET}}}'}}\n" if secret else ""
    contact = ", contact: {{github_login: s{n}}}" if secret else ""
    role = "  - {{name: seat {n}, handle: s{n}" + contact + "}}"
    roles = "\n".join(role.format(n=n) for n in range(seats))
    text = f"name: many\n{hooks}roles:\n{roles}\n"
    return parse_company(text, env={SECRET: secret} if secret else {})


async def _ensured(place: Place, wanted: Sequence[Mailbox]) -> float:
    began = time.perf_counter()
    await ensure_mailboxes(place.broker, wanted)
    return time.perf_counter() - began


async def _bare(place: Place, wanted: Sequence[Mailbox]) -> float:
    """The same durables, made by a plain client that asks for nothing but them."""
    client = await place.connect()
    gate = asyncio.Semaphore(CONCURRENCY)
    requests = [_request(mailbox) for mailbox in wanted]

    async def make(subject: str, body: bytes) -> None:
        async with gate:
            answer = json.loads((await client.request(subject, body, timeout=ANSWER_S)).data)
            assert "error" not in answer, answer["error"]

    try:
        began = time.perf_counter()
        await asyncio.gather(*(make(*request) for request in requests))
        return time.perf_counter() - began
    finally:
        await client.close()


def _request(mailbox: Mailbox) -> tuple[str, bytes]:
    topology = Topology(
        Api(Wire(NOWHERE)), memory=False, replicas=1, event_retention_hours=EVENT_RETENTION_HOURS
    )
    stream, config = names.stream_of(mailbox.topic), topology.mailbox(mailbox, 1)
    body = {"stream_name": stream, "config": config, "action": "create"}
    subject = f"$JS.API.CONSUMER.CREATE.{stream}.{config['name']}.{mailbox.topic}"
    return subject, json.dumps(body).encode()
