"""Contract 36, measured: however a hold on a mailbox ends, nothing sits out the ack window.

Random attaches, fetches, recalls, cancellations, releases and stops on the real server, while
mail comes in. Afterwards every message that was not settled is there at once.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from actors.delivery import Delivery, HandBack
from actors.ports import Attachment, NotLive
from crewlet.broker.jetstream import JetStreamBroker
from tests.broker.real import Real, box, done, eventually, serving

FETCH_S = 5.0


class Holder:
    """One node: a client, perhaps attached, perhaps with a fetch outstanding."""

    def __init__(self, real: Real, record: Record) -> None:
        self._real = real
        self._record = record
        self._client: JetStreamBroker | None = None
        self._attachment: Attachment | None = None
        self._fetch: asyncio.Task[list[Delivery]] | None = None

    async def act(self, dice: random.Random) -> str:
        """One random operation; its name."""
        if self._client is None:
            self._client = self._real.client("holder")
            await self._client.start()
            return "start"
        if self._attachment is None:
            self._attachment = await self._client.attach(box(), 1)
            return "attach"
        if self._fetch is None:
            self._fetch = asyncio.create_task(self._take(dice.randint(1, 5)))
            await asyncio.sleep(dice.uniform(0, 0.003))
            return "fetch"
        verb = dice.choices(("recall", "release", "cancel", "stop"), (5, 3, 2, 1))[0]
        self._record.met += not self._fetch.done()
        await getattr(self, verb)()
        await self._settle(dice)
        return verb

    async def recall(self) -> None:
        assert self._client is not None and self._attachment is not None
        await self._client.recall(self._attachment)

    async def release(self) -> None:
        assert self._client is not None and self._attachment is not None
        await self._client.release(self._attachment)
        self._attachment = None

    async def cancel(self) -> None:
        assert self._fetch is not None
        self._fetch.cancel()

    async def stop(self) -> None:
        """A fetch that is outstanding ends empty: what is on its way to it goes back. What it
        had brought before is ours to hand back."""
        assert self._client is not None and self._fetch is not None
        outstanding = not self._fetch.done()
        if not outstanding:
            await self._give_back(self._taken())
        await self._client.stop()
        await asyncio.wait({self._fetch})
        assert not outstanding or self._taken() == []
        self._client = self._attachment = self._fetch = None

    async def leave(self) -> None:
        if self._fetch is not None:
            await self.stop()
        elif self._client is not None:
            await self._client.stop()

    async def _take(self, most: int) -> list[Delivery]:
        assert self._client is not None and self._attachment is not None
        return list(await self._client.fetch(self._attachment, most, FETCH_S))

    def _taken(self) -> list[Delivery]:
        """Nothing of a fetch that was cancelled, or released before it began."""
        assert self._fetch is not None
        if self._fetch.cancelled() or isinstance(self._fetch.exception(), NotLive):
            return []
        return self._fetch.result()

    async def _settle(self, dice: random.Random) -> None:
        """What the fetch brought is done or goes back, as it comes."""
        if self._fetch is None:
            return
        await asyncio.wait({self._fetch})
        taken, self._fetch = self._taken(), None
        self._record.seen(taken)
        finished = [one for one in taken if dice.random() < 0.8]
        assert self._client is not None
        await self._client.settle(done(finished))
        self._record.finished.update(one.body for one in finished)
        await self._give_back([one for one in taken if one not in finished])

    async def _give_back(self, taken: list[Delivery]) -> None:
        assert self._client is not None
        self._record.seen(taken)
        await self._client.settle([(one, HandBack()) for one in taken])


class Record:
    """What the holders were handed."""

    def __init__(self) -> None:
        self.finished: Counter[bytes] = Counter()
        self.highest: dict[int, int] = {}
        self.met = 0
        """Operations that found a fetch outstanding: the others race with nothing."""

    def seen(self, taken: list[Delivery]) -> None:
        for one in taken:
            assert one.count is not None
            self.highest[one.position] = max(self.highest.get(one.position, 0), one.count)


async def _publish(client: JetStreamBroker, mail: list[bytes], stop: asyncio.Event) -> None:
    """Slower than it is taken: a fetch that finds mail waiting is over before it is recalled."""
    dice = random.Random(len(mail))
    while not stop.is_set():
        body = b"%06d" % len(mail)
        await client.publish(box().topic, body, message_id=f"id-{body.decode()}")
        mail.append(body)
        await asyncio.sleep(dice.uniform(0.001, 0.008))


async def _rest(client: JetStreamBroker, record: Record) -> list[bytes]:
    """All that is left, by fetches that do not wait; each once."""
    attachment, left = await client.attach(box(), 9), []
    while taken := list(await client.fetch(attachment, 100, 0.0)):
        for one in taken:
            assert one.count is not None and one.count > record.highest.get(one.position, 0)
        await client.settle(done(taken))
        left += [one.body for one in taken]
    return left


@pytest.mark.certifies(34, 35, 36)
@pytest.mark.parametrize(
    ("operations", "seed"),
    [
        (1000, 1),
        pytest.param(10_000, 2, marks=pytest.mark.long),
    ],
)
def test_random_letting_go_under_load_strands_loses_and_doubles_nothing(
    tmp_path: Path, operations: int, seed: int
) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            owner = real.client("owner")
            await owner.start()
            await owner.ensure(box())
            dice, record, stop = random.Random(seed), Record(), asyncio.Event()
            mail: list[bytes] = []
            publishing = asyncio.create_task(_publish(owner, mail, stop))
            holders = [Holder(real, record) for _ in range(3)]
            acts: Counter[str] = Counter()
            for _ in range(operations):
                acts[await dice.choice(holders).act(dice)] += 1
            for holder in holders:
                await holder.leave()
            stop.set()
            await publishing
            assert all(acts[verb] for verb in ("recall", "release", "cancel", "stop")), str(acts)
            assert record.met > operations / 20, f"{record.met}: too few met a fetch"
            began = time.monotonic()
            left = await _rest(owner, record)
            assert time.monotonic() - began < 5.0
            assert Counter(left) + record.finished == Counter(mail)

            async def empty() -> bool:
                (state,) = await owner.list(box().topic)
                return (state.waiting, state.in_flight) == (0, 0)

            await eventually(empty, 3.0)
            await owner.stop()

    asyncio.run(asyncio.wait_for(play(), 100))
