"""A client's hold on one mailbox of the twin, and its one fetch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from actors.delivery import Delivery, Mailbox
from actors.ports import NoMailbox, NotLive
from crewlet.broker.memory_mailbox import MemoryMailbox, Waiter


class MemoryAttachment:
    """From attach to release. The epoch is kept for its owner: the broker fences nobody,
    as JetStream does not."""

    def __init__(
        self,
        mailbox: Mailbox,
        epoch: int,
        box: MemoryMailbox,
        find: Callable[[Mailbox], MemoryMailbox | None],
    ) -> None:
        self.mailbox = mailbox
        self.epoch = epoch
        self._box = box
        self._find = find
        self._waiter: Waiter | None = None
        self._released = False
        self.abandoned = False

    @contextmanager
    def fetching(self, most: int) -> Iterator[Waiter]:
        """The fetch is outstanding, and can be recalled, from here to the end of the block.

        Cancelled in the turn of the loop in which it was given mail, it hands that back:
        nobody else would ever see it.
        """
        if self._released:
            raise NotLive(f"the attachment to {self.mailbox} was released")
        if self._waiter is not None:
            raise RuntimeError(f"a fetch on {self.mailbox} is outstanding")
        waiter = self._waiter = Waiter(most, asyncio.get_running_loop().create_future())
        try:
            yield waiter
        except asyncio.CancelledError:
            self._box.forsake(waiter)
            self._give_back(waiter)
            raise
        finally:
            self._box.leave(waiter)
            self._waiter = None

    async def pull(self, waiter: Waiter, wait_s: float) -> Sequence[Delivery]:
        """What is there; else what comes first within the wait."""
        if self._box.deleted:  # and perhaps made again: it is known by its name
            self._box = self._find(self.mailbox) or self._box
        if not waiter.woken.done() and not self._released:
            waiter.sent = self._box.take(waiter.most)
            if not waiter.sent and wait_s > 0 and not self._box.deleted:
                await self._stand(waiter, wait_s)
        if self._box.deleted:
            raise NoMailbox(f"the mailbox {self.mailbox} was destroyed")
        return waiter.sent

    def recall(self) -> None:
        """The outstanding fetch ends, with what it was given."""
        if self._waiter is not None:
            self._box.forsake(self._waiter)
            self._waiter.wake()

    def release(self) -> None:
        """The outstanding fetch ends empty: what it was given goes back, in order."""
        self._released = True
        self.recall()
        if self._waiter is not None:
            self._give_back(self._waiter)

    @property
    def positions(self) -> set[int]:
        """Of what was given to the fetch that has not answered."""
        sent = self._waiter.sent if self._waiter is not None else ()
        return {delivery.position for delivery in sent}

    def abandon(self) -> None:
        """The client is gone, or was fenced: its fetch ends, and what it holds stays held. One
        that was released before has let go in order."""
        self.abandoned, self._released = self.abandoned or not self._released, True
        self.recall()

    async def _stand(self, waiter: Waiter, wait_s: float) -> None:
        self._box.line_up(waiter)
        timer = asyncio.get_running_loop().call_later(wait_s, waiter.wake)
        try:
            await waiter.woken
        finally:
            timer.cancel()

    def _give_back(self, waiter: Waiter) -> None:
        if self.abandoned:
            return
        sent, waiter.sent = waiter.sent, []
        for delivery in sent:
            self._box.hand_back(delivery.position)
