"""The whole queue: publish and consume, hold and let go, ask and serve.

Letting go has verbs of rising destructiveness: quiesce takes nothing new and can be undone,
detach ends this process's part and keeps the mailbox, delete destroys it. Holds are named, and
lie over all of them. A local verb answers whether or not the broker does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from actors.delivery import BatchOptions, Mailbox, Outcome, Partition
from actors.machines import signals
from actors.machines.budget import Backoff
from actors.messages import BoxState
from actors.node import NodeSpec
from actors.ports import Clock, Consumed, MailboxState, NotLive
from actors.runtime import SeatRuntime
from crewlet import topics
from crewlet.broker.port import Answer, CompanyBroker, Subscription
from crewlet.events import Event
from crewlet.queue.batch import Handle, Key, batch_of, outcome_of, reader
from crewlet.queue.publisher import Listener, Published, Publisher

log = structlog.get_logger(__name__)

BOX: Final = "mail"
SHARED: Final = 0
"""Anybody may subscribe to a pair: nobody owns it, and its readers compete."""

ASK_WITHIN_S: Final = 2.0
STOP_WITHIN_S: Final = 5.0


class EventQueue(Publisher):
    """One client of the queue. Every verb raises NotLive before `start` and after `stop`, and
    changes nothing then; `wait_for_handlers` and `in_flight_count` answer all the same.

    It brings a runtime of its own for what is subscribed through it.
    """

    def __init__(
        self,
        broker: CompanyBroker,
        *,
        node_id: str,
        clock: Clock,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__(broker, node_id=node_id, clock=clock)
        self._backoff = backoff
        self._runtime: SeatRuntime | None = None
        self._live = False
        self._paused = False
        self._known: dict[Mailbox, None] = {}
        self._early_holds: dict[Mailbox, dict[str, None]] = {}
        self._first = asyncio.Lock()  # of holds that cross the first attachment of their pair
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    # -- life -------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Idempotent; a queue that was stopped starts as if it were new."""
        if self._live:
            return
        await self._broker.start()
        self._runtime = SeatRuntime(
            NodeSpec(self._broker, epoch=SHARED), clock=self._clock, fallen=self._on_fallen
        )
        await self._runtime.start()
        self._paused = False
        self._live = True

    def _on_fallen(self, reason: str) -> None:
        """The actors came down by themselves: nothing that is asked of us can be done."""
        log.critical("queue_fallen", reason=reason)
        self._live = False

    async def stop(self) -> None:
        """Let go of everything and leave. Idempotent. Running handlers are cut and their mail
        is handed back; to let them end, `pause_delivery` and `wait_for_handlers` first."""
        runtime, self._runtime = self._runtime, None
        if runtime is None:
            return
        fallen, self._live = not self._live, False
        self._known.clear()
        self._early_holds.clear()
        try:
            if not fallen:
                await runtime.drain(0.0)
            await runtime.stop()
        finally:
            await self.flush(STOP_WITHIN_S)
            await self._broker.stop()

    @property
    def backend(self) -> str:
        """The name of what it runs on, for people; nothing may decide on it."""
        return self._broker.backend

    # -- what is said -----------------------------------------------------------------

    async def publish(
        self, topic: str, event: Event, *, message_id: str = "", within_s: float = 60.0
    ) -> Published:
        self._check_live()
        return await super().publish(topic, event, message_id=message_id, within_s=within_s)

    async def subscribe_stream(self, pattern: str, handler: Listener) -> Subscription:
        self._check_live()
        return await super().subscribe_stream(pattern, handler)

    async def ask(
        self, question: str, body: bytes, *, wanted: int = 1, within_s: float = ASK_WITHIN_S
    ) -> Sequence[bytes]:
        """Ask everybody who serves `question`; up to `wanted` answers, in the order in which
        they came. Fewer within the deadline is no error; nothing of it is stored."""
        self._check_live()
        subject = topics.question(question)
        return await self._broker.ask(subject, body, wanted=wanted, within_s=within_s)

    async def serve(self, question: str, answer: Answer) -> Subscription:
        """Answer every asker, several at the same time. Closing waits for answers under way."""
        self._check_live()
        return await self._broker.serve(topics.question(question), answer)

    # -- mailboxes --------------------------------------------------------------------

    async def ensure(self, topic: str, group: str) -> bool:
        """Make the mailbox, with nothing attached, if it is missing; whether it was made."""
        self._check_live()
        return await self._broker.ensure(Mailbox(topic, group))

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        """Every mailbox whose topic matches, by whomever it was made and whoever reads it."""
        self._check_live()
        return await self._broker.list(pattern)

    async def delete(self, topic: str, group: str) -> bool:
        """Destroy the mailbox and its mail, attached here or not; whether there was one."""
        self._check_live()
        await self.detach(topic, group)
        return await self._broker.delete(Mailbox(topic, group))

    # -- consuming --------------------------------------------------------------------

    async def subscribe(self, topic: str, group: str, handler: Handle) -> None:
        """Have each message handled alone, one after another. Makes the mailbox if it is
        missing. ValueError where this client is attached to it already."""
        await self._attach(topic, group, handler, None, one_at_a_time)

    async def subscribe_batch(
        self,
        topic: str,
        group: str,
        handler: Handle,
        *,
        key: Key,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        """Have the messages of one key handled together; `options` is read for each drain."""
        await self._attach(topic, group, handler, key, options)

    async def _attach(
        self,
        topic: str,
        group: str,
        handler: Handle,
        key: Key | None,
        options: Callable[[], BatchOptions],
    ) -> None:
        runtime, mailbox = self._check_live(), Mailbox(topic, group)
        await self._broker.ensure(mailbox)
        run = self._counted(handler)
        consumed = Consumed(mailbox, reader(key), run, options, self._backoff)
        await self._consumer(mailbox)
        await runtime.attach(str(mailbox), BOX, consumed)

    def _counted(self, handler: Handle) -> Callable[[Partition], Awaitable[Outcome]]:
        async def run(partition: Partition) -> Outcome:
            self._running += 1
            self._quiet.clear()
            try:
                return outcome_of(await handler(batch_of(partition)))
            finally:
                self._running -= 1
                if not self._running:
                    self._quiet.set()

        return run

    async def detach(self, topic: str, group: str) -> bool:
        """End this client's part; cursor and mail stay, its holds are gone. No handler starts
        after this returns; one that runs is not waited for, and its outcome still applies.
        Whether there was something to end."""
        runtime, mailbox = self._check_live(), Mailbox(topic, group)
        if mailbox not in self._known:
            self._early_holds.pop(mailbox, None)
            return False
        return await runtime.detach(str(mailbox), BOX)

    async def quiesce(self, topic: str, group: str) -> bool:
        """Take nothing new until `unquiesce`; whether there was an attachment to quiesce."""
        before = await self._brake(topic, group, signals.Quiesce())
        return before is not None and before.attached

    async def unquiesce(self, topic: str, group: str) -> bool:
        """Undo `quiesce`, or the rest that a deferral began; whether there was one. Lifts no
        hold."""
        before = await self._brake(topic, group, signals.Unquiesce())
        return before is not None and (before.quiesced or before.deferred)

    async def hold(self, topic: str, group: str, reason: str) -> bool:
        """Take nothing new while `reason` is held, also from a later attachment; whether it
        is a new one."""
        self._check_live()
        mailbox = Mailbox(topic, group)
        async with self._first:
            if mailbox not in self._known:
                early = self._early_holds.setdefault(mailbox, {})
                is_new = reason not in early
                early[reason] = None
                return is_new
        before = await self._brake(topic, group, signals.Hold(reason))
        return before is not None and reason not in before.holds

    async def lift(self, topic: str, group: str, reason: str) -> bool:
        """End one hold; mail flows when it was the last. Whether it was held."""
        self._check_live()
        mailbox = Mailbox(topic, group)
        async with self._first:
            if mailbox not in self._known:
                early = self._early_holds.get(mailbox, {})
                was_held = reason in early
                early.pop(reason, None)
                return was_held
        before = await self._brake(topic, group, signals.Lift(reason))
        return before is not None and reason in before.holds

    async def _brake(self, topic: str, group: str, signal: signals.Brake) -> BoxState | None:
        runtime, mailbox = self._check_live(), Mailbox(topic, group)
        if mailbox not in self._known:
            return None
        return await runtime.brake(str(mailbox), BOX, signal)

    async def _consumer(self, mailbox: Mailbox) -> None:
        """The consumer of this pair, made with the first hold or attachment."""
        async with self._first:
            if mailbox in self._known:
                return
            runtime = self._check_live()
            await runtime.consumer(str(mailbox), BOX)
            for reason in self._early_holds.pop(mailbox, {}):
                await runtime.brake(str(mailbox), BOX, signals.Hold(reason))
            if self._paused:
                await runtime.brake(str(mailbox), BOX, signals.Pause())
            self._known[mailbox] = None

    # -- the drain --------------------------------------------------------------------

    async def pause_delivery(self) -> None:
        """One way: start nothing more, whatever is attached now or later. Publishing works."""
        runtime = self._check_live()
        self._paused = True
        pauses = (runtime.brake(str(box), BOX, signals.Pause()) for box in self._known)
        await asyncio.gather(*pauses)

    async def wait_for_handlers(self, timeout_s: float) -> int:
        """Wait until no handler runs; how many still do."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            pass
        return self._running

    @property
    def in_flight_count(self) -> int:
        """Handlers that run now."""
        return self._running

    def _check_live(self) -> SeatRuntime:
        if not self._live or self._runtime is None:
            raise NotLive("this queue is not started, or was stopped")
        return self._runtime


def one_at_a_time() -> BatchOptions:
    """An ordinary subscription takes one message when it is ready to run it."""
    return BatchOptions(max_batch=1)
