"""An embedder's company as the simulated fleet: the seats of his file, his handler, the full
dispatch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, cast

from actors.delivery import BUDGET, BatchOptions, Letter, Mailbox, Outcome, Partition, Partly
from actors.ports import Consumed
from actors.seat import SeatSpec
from actors.simulation.fleet import Fleet
from actors.simulation.history import Record
from actors.simulation.host import Host
from actors.simulation.site import Posting
from actors.system.clock import EPOCH
from actors.tenure import Fenced
from crewlet import topics
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company, Seat
from crewlet.events import Event, Trace, encode
from crewlet.events import catalogue as types
from crewlet.events.types import TaskAssigned
from crewlet.handlers.callable import CallableHandler, is_async
from crewlet.handlers.handler import Handler
from crewlet.inbound.dispatch import Dispatch
from crewlet.inbound.followers import Followers
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.letters import PARTITION_KEY, read
from crewlet.inbound.outages import Outages
from crewlet.inbound.running import Turns
from crewlet.inbound.services import Services
from crewlet.inbound.work import AtWork
from crewlet.queue import Publisher
from crewlet.runs.runs import Runs
from crewlet.testing.simulated.failures import Failures, missing
from crewlet.testing.simulated.site import HURRIED, TwinSite, ack, obeying, plain
from crewlet.testing.simulated.store import LinkedStore
from crewlet.turn import Nak, Suspend, Turn, Unavailable
from crewlet.turn import Outcome as Answered

Answer = Callable[[Turn], Any]
"""The handler under test: a function of a turn, async or not. It may not start threads."""

TURN_TIMEOUT_S: Final = 60.0

ELSEWHERE: Final = (Suspend, Unavailable)
"""Outcomes that a run or a provider outside has to end: a simulated fleet has neither."""

HANDLER: Final = "handler"
"""What is broken where a handler asks for what can't be simulated."""


class CompanySite(TwinSite):
    """`texts` is what people ask of the seats: one of them is the body of each message. `failures`
    takes why its turns failed."""

    def __init__(
        self,
        fleet: Fleet,
        company: Company,
        handler: Answer,
        texts: Sequence[str],
        failures: Failures,
    ) -> None:
        super().__init__(fleet, [seat.handle for seat in company.agents()])
        self._company = company
        self._body = Body(fleet, handler, failures)
        self._failures = failures
        self._texts = texts
        self._by_handle: Mapping[str, Seat] = {seat.handle: seat for seat in company.agents()}
        self._begun: dict[tuple[str, str, int], float] = {}
        self._longest_s = 0.0
        self._failed = False
        fleet.history.hear(self._on_turn, ("turn_start", "turn_end"))

    def _on_turn(self, record: Record) -> None:
        at = record.seat, record.node, record.inc
        if record.kind == "turn_start":
            self._begun[at] = record.t
            return
        self._longest_s = max(self._longest_s, record.t - self._begun.pop(at, record.t))
        self._failed = self._failed or record.code == "nak"

    def patience_s(self) -> float:
        """What is left, at the handler's own pace, and to the last delivery where it fails."""
        waiting = max(len(self.left(seat)) for seat in self.seats)
        running = max((self.fleet.world.now - begun for begun in self._begun.values()), default=0.0)
        turn_s = min(max(self._longest_s, running), TURN_TIMEOUT_S) + HURRIED.longest_s
        return waiting * turn_s * (BUDGET if self._failed else 1)

    def body(self, posting: Posting) -> bytes:
        """A task for the seat, with the key and the timestamp of the workload."""
        text = self._texts[sum(posting.msg.encode()) % len(self._texts)]
        event = Event.new(
            types.TASK_ASSIGNED,
            id=posting.msg,
            at=EPOCH + timedelta(seconds=posting.stamp),
            trace=Trace(trace_id="0" * 31 + "1", span_id="0" * 15 + "1"),
            payload={"recipient_handle": posting.seat, PARTITION_KEY: posting.key},
            body=TaskAssigned(handle=posting.seat, text=text, sender="simulation"),
        )
        return encode(event)

    async def prepare_seat(self, host: Host, store: LinkedStore, seat: str) -> SeatSpec:
        """As the node does it."""
        queue = Publisher(cast(CompanyBroker, host.broker), node_id=host.name, clock=host.clock)
        ledger, brakes = Ledger(store), _Unbraked()
        services = Services(
            company=lambda: self._company,
            node_id=host.name,
            queue=queue,
            ledger=ledger,
            followers=Followers(store),
            turns=Turns(64),
            clock=host.clock,
            brakes=brakes,
            outages=Outages(brakes, queue, host.clock),
            runs=Runs(store, queue, ledger, brakes, host.clock, host.name),
        )
        handler = CallableHandler(self._body, TURN_TIMEOUT_S)
        turn = FullTurn(host, seat, store, handler, self.seat_of, self._failures)
        at_work = AtWork(self._by_handle[seat], turn.handle, TURN_TIMEOUT_S)
        dispatch = Dispatch(lambda: at_work, services)
        turn.dispatched = dispatch.run
        return SeatSpec(
            handle=seat,
            inbox=Consumed(topics.inbox_of(seat), read, turn.run, self._batches, HURRIED),
            control=Consumed(topics.control_of(seat), plain, obeying(host, seat)),
            reflect=Consumed(topics.reflect_of(seat), plain, ack),
        )

    def _batches(self) -> BatchOptions:
        return self._company.batch_options


class _Unbraked:
    """Nothing in a simulated turn holds a seat: faults do. What would hold it defers it."""

    async def hold(self, handle: str, name: str) -> bool:
        return False

    async def lift(self, handle: str, name: str) -> bool:
        return False


class Body:
    """The handler under test, as an async function: what it lets out is written down, and what
    no simulated process has ends the run."""

    def __init__(self, fleet: Fleet, handler: Answer, failures: Failures) -> None:
        self._fleet = fleet
        self._handler = handler
        self._failures = failures

    async def __call__(self, turn: Turn) -> object:
        try:
            answer = self._handler(turn)
            if is_async(self._handler):  # what else returns a coroutine, a node awaits no more
                answer = await answer
        except Exception as error:
            self._failures.let_out(error)
            if name := missing(error):
                self._fleet.fail(
                    HANDLER, f"it called loop.{name}: a simulated process has no threads, sockets "
                    "or child processes; `await asyncio.sleep(...)` stands for what they take",
                )  # fmt: skip
            raise
        if isinstance(answer, ELSEWHERE):
            self._fleet.fail(
                HANDLER, f"it returned {type(answer).__name__}: nothing here would end that; have "
                "it return something else in a simulation",
            )  # fmt: skip
        return answer


class FullTurn:
    """The dispatch of one seat in one process, written down as it goes."""

    def __init__(
        self,
        host: Host,
        seat: str,
        store: LinkedStore,
        handler: Handler,
        seat_of: Callable[[Mailbox], str],
        failures: Failures,
    ) -> None:
        self.dispatched: Callable[[Partition], Awaitable[Outcome | Partly]]
        self._host = host
        self._write = host.noter()
        self._seat = seat
        self._store = store
        self._handler = handler
        self._seat_of = seat_of
        self._failures = failures
        self._letters: dict[str, Letter] = {}
        self._partition: Partition
        self._asked = 0.0
        self._unread = 0
        self._running = False

    async def run(self, partition: Partition) -> Outcome | Partly:
        self._partition, self._asked = partition, self._host.wire.world.now
        self._unread, self._running = self._store.unread, False
        self._letters = {letter.id: letter for letter in partition.letters}
        code = "cut"
        try:
            outcome = await self.dispatched(partition)
            rest = outcome.rest if isinstance(outcome, Partly) else outcome
            code = type(rest).__name__.lower()
            if not self._running:
                done = outcome.done if isinstance(outcome, Partly) else tuple(self._letters)
                self._skipped(done)
        except Fenced:
            code = "fenced"
            raise
        finally:
            if self._running:
                self._note("turn_end", code=code)
        return outcome

    def _skipped(self, ids: Iterable[str]) -> None:
        """No turn runs for these: the ledger has them, or one turn is for several of them."""
        for letter in (self._letters[id] for id in ids if id in self._letters):
            self._write("skip", seat=self._seat, msg=letter.id, seq=letter.delivery.position,
                        sent=_stamp(letter))  # fmt: skip

    async def handle(self, turn: Turn) -> Answered:
        """What the dispatch believes to be the seat's handler."""
        self._running = True
        working = {event.id for event in turn.events}
        self._skipped(id for id in self._letters if id not in working)
        self._note("turn_start", key=self._partition.key, pos=len(turn.events), sent=self._asked)
        unread = self._store.unread > self._unread
        for event in turn.events:
            letter = self._letters[event.id]
            of = "unread" if unread else self._seat_of(letter.delivery.mailbox)
            self._write(
                "turn_letter", seat=self._seat, msg=letter.id, seq=letter.delivery.position,
                dc=letter.delivery.count or 0, sent=_stamp(letter), code=of,
            )  # fmt: skip
        outcome = await self._handler(turn)
        if isinstance(outcome, Nak):
            self._failures.failed(outcome.reason)
        return outcome

    def _note(self, kind: str, **fields: object) -> None:
        fence = self._partition.fence
        revision = fence.revision if fence else 0
        self._write(kind, seat=self._seat, fence=revision, **fields)


def _stamp(letter: Letter) -> float:
    """Its timestamp, in seconds of the world."""
    return round((letter.timestamp or 0.0) - EPOCH.timestamp(), 6)
