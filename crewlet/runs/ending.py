"""What has to be done once a run is over, each step of it as often as it is begun.

Its triggers are worked, a reply that nobody took is mail again, the seat has the result in its
inbox, the record has the event; then the row is told, and the hold goes with the last of them.
"""

from __future__ import annotations

from typing import Final

from actors.ports import Clock
from crewlet import topics
from crewlet.inbound.ledger import Ledger
from crewlet.queue import Publisher
from crewlet.runs import notices
from crewlet.runs.live import Live
from crewlet.runs.row import HandedBack, Reply, Run, Told
from crewlet.runs.store import Kept

PUBLISH_S: Final = 10.0


class Ending:
    """Every verb may raise StoreUnavailable, PublishUnknown or a BrokerError: some of it is
    done, and beginning again is safe."""

    def __init__(
        self, live: Live, queue: Publisher, ledger: Ledger, clock: Clock, node_id: str
    ) -> None:
        self._live = live
        self._queue = queue
        self._ledger = ledger
        self._clock = clock
        self._node_id = node_id

    async def tell(self, kept: Kept) -> Kept:
        """Of a run that is over."""
        run = kept.run
        if run.told:
            return kept
        assert run.end is not None, "a run that is over has an end"
        await self.worked(run)
        if (reply := run.outbox) is not None:
            await self._hand_back(run, reply)
        event = notices.ended(run, run.end)
        await self._queue.publish(topics.inbox(run.handle), event, within_s=PUBLISH_S)
        await self._queue.record(event)
        return await self._live.change(run.handle, run.run_id, Told())

    async def worked(self, run: Run) -> None:
        """The turn that suspended has worked its triggers, also where its node died before it
        could say so: the row is the proof."""
        origin = run.origin
        if origin.triggers:
            await self._ledger.record(
                run.handle,
                origin.triggers,
                turn_id=origin.turn_id,
                node=origin.node,
                at=self._clock.now(),
            )

    async def leaves(self, run: Run, reply: Reply) -> bool:
        """The reply's own delivery is worked from now on. False where a turn had worked it: the
        reply is that turn's."""
        worker = f"run {run.run_id}"
        await self._ledger.record(
            run.handle,
            [reply.event_id],
            turn_id=worker,
            node=self._node_id,
            at=self._clock.now(),
        )
        row = (await self._ledger.worked(run.handle, [reply.event_id])).get(reply.event_id)
        return row is None or row.turn_id == worker

    async def _hand_back(self, run: Run, reply: Reply) -> None:
        if await self.leaves(run, reply):
            mail = notices.handed_back(run, reply)
            await self._queue.publish(topics.inbox(run.handle), mail, within_s=PUBLISH_S)
        await self._live.change(run.handle, run.run_id, HandedBack())
