"""Plays a script of the port over one world, and writes down what it was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from actors.delivery import Delivery, HandBack, Mailbox, Retry
from actors.ports import Attachment, BrokerError, Receipt
from crewlet import topics
from crewlet.broker.port import CompanyBroker
from tests.differential import normal
from tests.differential import port_steps as steps
from tests.differential.pace import STEP_S, Pace
from tests.differential.worlds import World

PARKED_S: Final = 300.0
COUNTED_S: Final = 0.5
MOST_S: Final = 10.0
"""Every answer comes within this, or the script fails by it."""

Answer: TypeAlias = object
Line: TypeAlias = tuple[steps.Step, Answer, Answer]
"""A step, what it was answered, and how the mailboxes stood afterwards."""


class Player:
    """One run. `prefix` keeps its names apart from those of all other runs of the server."""

    def __init__(self, world: World, pace: Pace, prefix: str) -> None:
        self.lines: list[Line] = []
        self._world = world
        self._pace = pace
        self._prefix = prefix
        one, other = topics.inbox_of(f"{prefix}-a"), topics.event(f"{prefix}-b")
        self._topics = (one.topic, other)
        self._boxes = (one, Mailbox(one.topic, "others"), Mailbox(other, "readers"))
        self._clients: list[CompanyBroker] = []
        self._attached: dict[tuple[int, int], Attachment] = {}
        self._parked: dict[tuple[int, int], asyncio.Task[Sequence[Delivery]]] = {}
        self._seen: list[list[Delivery]] = [[] for _ in self._boxes]
        self._bases: dict[str, int] = {}
        self._states: list[tuple[int, int] | None] = [None] * len(self._boxes)
        self._started = 0

    async def play(self, script: steps.Script) -> None:
        for _ in range(steps.CLIENTS):
            self._clients.append(await self._new_client())
        for topic in self._topics:
            base = Mailbox(topic, "base")
            await self._clients[0].ensure(base)
            self._bases[topic] = (await self._publish(topic, b"", "base")).position
            await self._clients[0].delete(base)
        for box in self._boxes:
            await self._clients[0].ensure(box)
        self._states = [(0, 0)] * len(self._boxes)
        try:
            for step in script:
                await self._take(step)
            await self._end()
        finally:
            await self._clear()

    async def _take(self, step: steps.Step) -> None:
        if isinstance(step, steps.Idle):
            return
        await self._pace.turn(_TAKES_S.get(type(step), STEP_S), _delays(step))
        await self._collect()
        answer = await self._answer(step)
        await self._quiet()
        self._states = await self._stand(step, answer)
        self.lines.append((step, answer, self._states))

    async def _answer(self, step: steps.Step) -> Answer:
        try:
            async with asyncio.timeout(MOST_S):
                return await _PLAYS[type(step)](self, step)
        except (BrokerError, RuntimeError, ValueError) as error:
            return type(error).__name__

    # -- the steps ------------------------------------------------------------------------

    async def _play_publish(self, step: steps.Publish) -> Answer:
        topic = self._topics[step.topic]
        body = f"{step.topic}:{step.id}".encode()
        receipt = await self._publish(topic, body, f"{step.id}", step.who)
        return receipt.position - self._bases[topic], receipt.duplicate

    async def _publish(self, topic: str, body: bytes, id: str, who: int = 0) -> Receipt:
        return await self._clients[who].publish(topic, body, message_id=f"{self._prefix}/{id}")

    async def _play_fetch(self, step: steps.Fetch) -> Answer:
        if (step.box, step.who) in self._parked:
            return normal.ONE_AT_A_TIME
        return self._told(step.box, await self._fetch(step.box, step.who, step.most, 0.0))

    async def _fetch(self, box: int, who: int, most: int, wait_s: float) -> Sequence[Delivery]:
        attachment = await self._attachment(box, who)
        return await self._clients[who].fetch(attachment, most, wait_s)

    async def _attachment(self, box: int, who: int) -> Attachment:
        if (box, who) not in self._attached:
            client = self._clients[who]
            self._attached[box, who] = await client.attach(self._boxes[box], 1)
        return self._attached[box, who]

    def _told(self, box: int, deliveries: Sequence[Delivery]) -> Answer:
        self._seen[box] += deliveries
        return [self._shown(delivery) for delivery in deliveries]

    def _shown(self, delivery: Delivery) -> Answer:
        position = delivery.position - self._bases[delivery.mailbox.topic]
        id = delivery.message_id.removeprefix(self._prefix)
        return delivery.body.decode(), delivery.count, position, id

    async def _play_park(self, step: steps.Park) -> Answer:
        at = step.box, step.who
        if at in self._parked:
            return normal.ONE_AT_A_TIME
        await self._attachment(*at)
        fetch = self._fetch(step.box, step.who, step.most, PARKED_S)
        self._parked[at] = asyncio.create_task(fetch)
        return "parked"

    async def _play_recall(self, step: steps.Recall) -> Answer:
        return await self._recall(step.box, step.who)

    async def _recall(self, box: int, who: int) -> Answer:
        if (box, who) not in self._attached:
            return "not attached"
        await self._clients[who].recall(self._attached[box, who])
        return "recalled"

    async def _recall_all(self, box: int) -> None:
        """Of several messages that come back one by one, a parked fetch takes the first or
        more: nobody promises which."""
        for who in range(steps.CLIENTS):
            if (box, who) in self._parked:
                await self._recall(box, who)
        await self._quiet()
        await self._collect()

    async def _play_settle(self, step: steps.Settle) -> Answer:
        seen = self._seen[step.box]
        verdicts = normal.settled_in_order(
            [(seen[-1 - which], said) for which, said in step.what if which < len(seen)]
        )
        if not verdicts:
            return "nothing to settle"
        if len(verdicts) > 1:
            await self._recall_all(step.box)
        try:
            await self._clients[step.who].settle(verdicts)
        finally:
            for _delivery, verdict in verdicts:
                if isinstance(verdict, Retry) and verdict.delay_s:
                    self._pace.due_in(verdict.delay_s)
            await self._world.fence(self._clients[step.who], self._boxes[step.box])
        return [(self._shown(delivery), verdict) for delivery, verdict in verdicts]

    async def _play_release(self, step: steps.Release) -> Answer:
        if (step.box, step.who) not in self._attached:
            return "not attached"
        await self._clients[step.who].release(self._attached[step.box, step.who])
        return "released"

    async def _play_attach(self, step: steps.Attach) -> Answer:
        await self._recall_all(step.box)
        self._attached.pop((step.box, step.who), None)
        await self._attachment(step.box, step.who)
        return "attached"

    async def _play_reclaim(self, step: steps.Reclaim) -> Answer:
        await self._recall_all(step.box)
        return await self._clients[step.who].reclaim(self._boxes[step.box])

    async def _play_sweep(self, step: steps.Sweep) -> Answer:
        return self._told(step.box, await self._clients[step.who].sweep(self._boxes[step.box]))

    async def _play_burn(self, step: steps.Burn) -> Answer:
        await self._recall_all(step.box)
        burnt = []
        for _ in range(step.times):
            taken = await self._fetch(step.box, step.who, 1, 0.0)
            burnt.append(self._told(step.box, taken))
            if not taken:
                break
            await self._clients[step.who].settle([(taken[0], HandBack())])
        return burnt

    async def _play_delete(self, step: steps.Delete) -> Answer:
        gone = await self._clients[step.who].delete(self._boxes[step.box])
        if gone:
            await self._world.deleted(self._boxes[step.box].topic)
        return gone

    async def _play_ensure(self, step: steps.Ensure) -> Answer:
        return await self._clients[step.who].ensure(self._boxes[step.box])

    async def _play_restart(self, step: steps.Restart) -> Answer:
        who, client = step.who, self._clients[step.who]
        if step.crash:
            await self._world.crash(client)
            for at in [at for at in self._parked if at[1] == who]:
                self._parked.pop(at).cancel()
        else:
            await client.stop()
            await self._quiet()
            await self._collect()
        for at in [at for at in self._attached if at[1] == who]:
            del self._attached[at]
        self._clients[who] = await self._new_client()
        return "restarted"

    async def _new_client(self) -> CompanyBroker:
        self._started += 1
        client = self._world.client(f"{self._prefix}-{self._started}")
        await client.start()
        return client

    async def _play_restart_broker(self, step: steps.RestartBroker) -> Answer:
        for box in range(steps.BOXES):
            await self._recall_all(box)
        for (_, who), attachment in self._attached.items():
            await self._clients[who].release(attachment)
        self._attached.clear()
        await self._world.restart()
        return await normal.owners_begin_again(self._clients[0], self._boxes)

    async def _play_pass_time(self, step: steps.PassTime) -> Answer:
        await self._pace.passes(step.times * steps.PASS_S)
        return "passed"

    # -- what is seen ---------------------------------------------------------------------

    async def _quiet(self) -> None:
        """No parked fetch answers any more because of the last step."""
        while waiting := [task for task in self._parked.values() if not task.done()]:
            ended, _ = await asyncio.wait(
                waiting, timeout=self._world.quiet_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not ended:
                return

    async def _collect(self) -> None:
        """What parked fetches brought until now."""
        await asyncio.sleep(self._world.quiet_s / 100)
        for at, task in sorted(self._parked.items()):
            if task.done():
                del self._parked[at]
                try:
                    answer = self._told(at[0], task.result())
                except (BrokerError, RuntimeError) as error:
                    answer = type(error).__name__
                self.lines.append((steps.Park(at[0], 0, at[1]), answer, None))

    async def _stand(self, step: steps.Step, answer: Answer) -> list[tuple[int, int] | None]:
        """How the mailboxes stand. A new message is counted a moment after it was taken."""
        new = isinstance(step, steps.Publish) and isinstance(answer, tuple) and not answer[1]
        topic = self._topics[step.topic] if isinstance(step, steps.Publish) else ""
        deadline = asyncio.get_running_loop().time() + COUNTED_S
        while True:
            found = {state.mailbox: state for state in await self._clients[0].list(">")}
            states = [found.get(box) for box in self._boxes]
            stand = [(one.waiting, one.in_flight) if one else None for one in states]
            uncounted = new and any(
                before is not None and now is not None and sum(now) <= sum(before)
                for box, before, now in zip(self._boxes, self._states, stand, strict=True)
                if box.topic == topic
            )
            if not uncounted or asyncio.get_running_loop().time() > deadline:
                return stand
            await asyncio.sleep(0.002)

    async def _end(self) -> None:
        """What is left, in its order, once the short retries are due; and the dead letters."""
        await self._take(steps.PassTime(1))
        for box in range(steps.BOXES):
            await self._recall_all(box)
        for box in range(steps.BOXES):
            await self._take(steps.Attach(box, 0))
            await self._take(steps.Fetch(box, 100, 0))
        letters = [
            (letter.body, letter.deliveries, letter.reason, self._boxes.index(letter.mailbox))
            for letter in await self._clients[0].dead_letters(200)
            if letter.mailbox in self._boxes
        ]
        self.lines.append((steps.Idle(), letters, None))

    async def _clear(self) -> None:
        for task in self._parked.values():
            task.cancel()
        await asyncio.gather(*self._parked.values(), return_exceptions=True)
        for box in self._boxes:
            await self._clients[0].delete(box)
        for client in self._clients:
            await client.stop()


def _delays(step: steps.Step) -> list[float]:
    if not isinstance(step, steps.Settle):
        return []
    return [said.delay_s for _, said in step.what if isinstance(said, Retry) and said.delay_s]


_TAKES_S: Final = {steps.Burn: 0.15, steps.Restart: 0.15, steps.RestartBroker: 2.0}

_PLAYS: Final[dict[type[Any], Callable[[Player, Any], Awaitable[Answer]]]] = {
    steps.Publish: Player._play_publish,
    steps.Fetch: Player._play_fetch,
    steps.Park: Player._play_park,
    steps.Recall: Player._play_recall,
    steps.Settle: Player._play_settle,
    steps.Release: Player._play_release,
    steps.Attach: Player._play_attach,
    steps.Reclaim: Player._play_reclaim,
    steps.Sweep: Player._play_sweep,
    steps.Burn: Player._play_burn,
    steps.Delete: Player._play_delete,
    steps.Ensure: Player._play_ensure,
    steps.Restart: Player._play_restart,
    steps.RestartBroker: Player._play_restart_broker,
    steps.PassTime: Player._play_pass_time,
}
