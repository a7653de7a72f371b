"""The composition root: a broker, the actors on it, the web edge, the socket for operators.

Start order and stop order are each other's mirror; whatever failed half way is taken down
again, so that a start that was refused leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import structlog

from actors.delivery import Ack, BatchOptions, Mailbox, Outcome, Partition
from actors.messages import NodeDrained
from actors.node import NodeSpec
from actors.ports import Clock, Consumed
from actors.runtime import SeatRuntime
from actors.seat import CONTROL, INBOX, REFLECT, SeatSpec
from actors.system import SystemClock
from crewlet import topics
from crewlet.broker import open_broker
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company, HandlerSpec, NodeSettings, Seat, load_company
from crewlet.errors import NodeRefused
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import OrgStarted, OrgStopped, TaskAssigned
from crewlet.handlers import Handler, Strays, build_handler, wrap
from crewlet.inbound.dispatch import Dispatch, Services
from crewlet.inbound.followers import Followers
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.letters import event_of, read, read_alone
from crewlet.inbound.router import Router
from crewlet.inbound.running import Turns
from crewlet.node.data_folder import DataFolder
from crewlet.node.edge import WebhookEdge
from crewlet.node.fleet import FleetOfOne, FleetView
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.node.pauses import PAUSED, Pauses
from crewlet.node.presence import Presence
from crewlet.node.seats import NO_HANDLER
from crewlet.node.verbs import Operators
from crewlet.queue import Published, Publisher
from crewlet.web import WebServer, make_app

TURN_TIMEOUT_S: Final = 1800.0
"""Of a turn that an embedder gives as a callable: the ack window of a mailbox."""

FLUSH_S: Final = 2.0

Reflect = Callable[[Event], Awaitable[None]]

log = structlog.get_logger(__name__)


class Node:
    """One process's share of a company.

    `turn` works every seat that has no handler of its own in the company's file; `reflect`
    is given each finished turn. `web` false opens no port, `admin` false no socket; `folder`
    is where handlers are looked for and commands run. Use it as
    `async with Node(...) as node:`; leaving the block drains: what runs ends or is handed
    back, nothing stays behind.
    """

    def __init__(
        self,
        company: Company | Path | str,
        *,
        turn: Callable[..., Any] | None = None,
        reflect: Reflect | None = None,
        settings: NodeSettings | None = None,
        data: Path | str = ".crewlet",
        web: bool = True,
        admin: bool = True,
        folder: Path | None = None,
        broker: CompanyBroker | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.company = company if isinstance(company, Company) else load_company(Path(company))
        self.settings = settings or NodeSettings()
        self.clock: Clock = clock or SystemClock()
        self.turns = Turns(self.settings.node.max_concurrent)
        self.strays = Strays()
        self.stopping = asyncio.Event()
        self.lost = False
        self.failed = False
        self.disowned: tuple[str, ...] = ()
        self._folder = None if broker is not None and not admin else DataFolder(Path(data))
        if folder is None and not isinstance(company, Company):
            folder = Path(company).parent
        self._company_folder = folder
        self._turn = turn
        self._reflect = reflect
        self._web = WebServer() if web else None
        self._admin = admin
        self._given_broker = broker
        self._closers = AsyncExitStack()
        self._drained: NodeDrained | None = None

    # -- life -------------------------------------------------------------------------

    async def start(self) -> None:
        """Everything, in order. Raises NodeRefused, BrokerRefused or ConfigError with the way
        out; then nothing of it is left."""
        try:
            await self._start()
        except BaseException:
            await self._closers.aclose()
            raise

    async def _start(self) -> None:
        handlers = {seat.handle: self._handler(seat) for seat in self.company.agents()}
        if self._folder is not None:
            self._folder.hold()
            self._closers.callback(self._folder.release)
        self.broker = await self._open_broker()
        self._closers.push_async_callback(self.broker.stop)
        await self._claim()
        self.queue = Publisher(self.broker, node_id=self.node_id, clock=self.clock)
        self.edge = WebhookEdge(lambda: self.company, self.queue, self.clock)
        self.ledger = Ledger(self.broker.store)
        self.pauses = Pauses(self.broker.store, self.queue, self.clock)
        self.fleet: FleetView = FleetOfOne(self)
        held = await ensure_mailboxes(self.broker, self.company)
        spec = self._spec(handlers, held, await self.pauses.all())
        self._seats = {seat.handle: seat for seat in spec.seats}
        self.runtime = SeatRuntime(spec, clock=self.clock, fallen=self._on_fallen)
        self._closers.push_async_callback(self.runtime.stop)
        await self.runtime.start()
        await self._open_faces()
        self.edge.ready = True
        seats = tuple(seat.handle for seat in self.company.agents())
        self._record(types.ORG_STARTED, OrgStarted(company=self.company.name, seats=seats))
        log.info("node_started", node=self.node_id, company=self.company.name, seats=len(seats))

    async def _open_faces(self) -> None:
        if self._web is not None:
            api = self.settings.api
            await self._web.start(make_app(self.edge), api.host, api.port)
            self._closers.push_async_callback(self._web.stop)
        if self._admin and self._folder is not None:
            operators = Operators(self, self._folder.path)
            self._closers.push_async_callback(operators.stop)
            await operators.start()

    async def _open_broker(self) -> CompanyBroker:
        if self._given_broker is not None:
            await self._given_broker.start()
            return self._given_broker
        assert self._folder is not None
        return await open_broker(
            self.settings.stream, node_id=self.node_id, data_dir=self._folder.path
        )

    async def _claim(self) -> None:
        """On a broker of somebody else's, be the one node of this company."""
        if self.settings.stream.type == "nats" and self._given_broker is None:
            presence = Presence(self.broker.store, self.node_id, self.clock, self._on_lost)
            await presence.claim()
            self._closers.push_async_callback(presence.release)

    def _on_fallen(self, reason: str) -> None:
        """The actors came down by themselves: leave, and let the next start reclaim."""
        log.critical("node_fallen", reason=reason)
        self.failed = True
        self.stopping.set()

    def _on_lost(self) -> None:
        """Another process serves the company: stop, whatever runs."""
        self.lost = True
        self.stopping.set()

    async def drain(self, bound_s: float | None = None) -> NodeDrained:
        """No new turns; running ones end within the bound, then they are cut and handed back."""
        if self._drained is None:
            self.edge.draining = True
            bound_s = self.settings.drain_timeout_s if bound_s is None else bound_s
            if self.failed:  # there is nobody left to ask
                self._drained = NodeDrained((), ())
            else:
                self._drained = await self.runtime.drain(bound_s)
            self.disowned = await self.strays.let_go()
            interrupted = tuple(f"{seat} {key}" for seat, key in self._drained.cut)
            body = OrgStopped(company=self.company.name, interrupted=interrupted)
            self._record(types.ORG_STOPPED, body)
            await self.queue.flush(FLUSH_S)
        return self._drained

    async def stop(self) -> None:
        """Drain, then take everything down in reverse order. Idempotent."""
        try:
            if self._drained is None:
                await self.drain()
        finally:
            await self._closers.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # -- what one asks a node for -----------------------------------------------------

    @property
    def node_id(self) -> str:
        return self.settings.node.id

    @property
    def url(self) -> str:
        """Where the web edge listens; empty without one."""
        if self._web is None or not self._web.port:
            return ""
        host = self.settings.api.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._web.port}"

    async def send(self, handle: str, text: str, *, sender: str = "") -> Published:
        """Put a task into a seat's inbox; returns once it is stored. Raises NodeRefused for a
        handle that is no agent seat."""
        seat = self.company.seat(handle)
        if seat is None or not seat.is_agent:
            known = ", ".join(s.handle for s in self.company.agents()[:20])
            what = "a human, whom no turn wakes" if seat else "no seat of this company"
            raise NodeRefused(f"{handle!r} is {what}; agent seats: {known}")
        body = TaskAssigned(handle=handle, text=text, sender=sender)
        event = Event.new(
            types.TASK_ASSIGNED,
            at=self.clock.now(),
            trace=Trace.current(),
            source=sender,
            payload={"recipient_handle": handle},
            body=body,
        )
        return await self.queue.publish(topics.inbox(handle), event)

    def on_answer(self, heard: Callable[[str, str], None]) -> None:
        """Call `heard(handle, answer)` for each turn that this node finishes with an answer."""

        def listener(topic: str, event: Event) -> None:
            if (
                event.type == types.AGENT_TURN_COMPLETED
                and event.value("outcome", str, "") == "ack"
            ):
                heard(event.value("agent_role", str, ""), event.value("answer", str, ""))

        self.queue.add_listener(listener)

    def consumed(self, handle: str, box: str) -> Consumed:
        """What is done here with the mail of one of a seat's boxes."""
        seat = self._seats[handle]
        return {INBOX: seat.inbox, CONTROL: seat.control, REFLECT: seat.reflect}[box]

    async def holds_of(self, handle: str) -> Sequence[str]:
        """The holds that the seat's inbox is taken up with; a pause may have come since."""
        own = (hold for hold in self._seats[handle].holds if hold != PAUSED)
        return (*own, *await self.pauses.holds_of(handle))

    # -- how seats are made -----------------------------------------------------------

    def _handler(self, seat: Seat) -> Handler | None:
        """What works the seat; ConfigError if it is broken."""
        spec = self._handler_spec(seat)
        if spec is None and self._turn is not None:
            return wrap(
                self._turn, TURN_TIMEOUT_S, on_overdue=self.turns.overdue, strays=self.strays
            )
        if spec is None:
            log.warning("seat_without_handler", seat=seat.handle)
            return None
        return build_handler(
            spec,
            on_overdue=self.turns.overdue,
            folder=self._company_folder,
            secrets=self._secrets(),
            strays=self.strays,
        )

    def _handler_spec(self, seat: Seat) -> HandlerSpec | None:
        """The seat's own, else the embedder's callable (None here), else the company's."""
        if seat.handler is None and self._turn is not None:
            return None
        return self.company.handler_of(seat)

    def _secrets(self) -> list[str]:
        github = self.company.integrations.github
        return [] if github is None else [github.secret.reveal()]

    def _spec(
        self,
        handlers: dict[str, Handler | None],
        held: frozenset[Mailbox],
        paused: frozenset[str],
    ) -> NodeSpec:
        followers = Followers(self.broker.store)
        services = Services(
            company=self.company.name,
            node_id=self.node_id,
            queue=self.queue,
            ledger=self.ledger,
            followers=followers,
            turns=self.turns,
            clock=self.clock,
        )
        router = Router(
            lambda: self.company,
            queue=self.queue,
            followers=followers,
            store=self.broker.store,
            clock=self.clock,
        )
        one_by_one = Consumed(topics.inbound(), read_alone, router.run, one_at_a_time)
        seats = [
            self._seat(seat, handlers[seat.handle], services, held, seat.handle in paused)
            for seat in self.company.agents()
        ]
        return NodeSpec(self.broker, seats, one_by_one, reclaim_router=topics.inbound() in held)

    def _seat(
        self,
        seat: Seat,
        handler: Handler | None,
        services: Services,
        held: frozenset[Mailbox],
        paused: bool,
    ) -> SeatSpec:
        boxes = (
            topics.inbox_of(seat.handle),
            topics.control_of(seat.handle),
            topics.reflect_of(seat.handle),
        )
        spec = self._handler_spec(seat)
        timeout_s = TURN_TIMEOUT_S if spec is None else spec.timeout_s
        run = _nobody if handler is None else Dispatch(seat, handler, timeout_s, services).run
        return SeatSpec(
            handle=seat.handle,
            inbox=Consumed(boxes[0], read, run, lambda: self.company.batch_options),
            control=Consumed(boxes[1], read_alone, _acknowledge),
            reflect=Consumed(boxes[2], read_alone, self._reflected),
            reclaim=any(box in held for box in boxes),
            holds=((NO_HANDLER,) if handler is None else ()) + ((PAUSED,) if paused else ()),
        )

    async def _reflected(self, partition: Partition) -> Outcome:
        if self._reflect is not None:
            await self._reflect(event_of(partition.letters[0]))
        return Ack()

    def _record(self, event_type: str, body: OrgStarted | OrgStopped) -> None:
        event = Event.new(event_type, at=self.clock.now(), trace=Trace.root(), body=body)
        self.queue.record_soon(event)


def one_at_a_time() -> BatchOptions:
    """An ordinary subscription takes one message at a time."""
    return BatchOptions(max_batch=1)


async def _acknowledge(partition: Partition) -> Outcome:
    """Control has nobody to talk to yet: long runs bring it its work."""
    return Ack()


async def _nobody(partition: Partition) -> Outcome:
    """Never called: a seat without a handler is held before its mailbox is attached."""
    raise NodeRefused("the seat has no handler")
