"""The composition root: a broker, the actors on it, the web edge, the socket for operators.

Start order and stop order are each other's mirror; whatever failed half way is taken down
again, so that a start that was refused leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import structlog

from actors.delivery import BatchOptions, Mailbox
from actors.machines.placement import Strategy, fair_shares
from actors.machines.timing import Timing
from actors.messages import NodeDrained
from actors.node import NodeSpec
from actors.ports import Clock, Consumed
from actors.runtime import IdTaken, SeatRuntime
from actors.seat import CONTROL, INBOX, REFLECT
from actors.system import SystemClock
from actors.watchdog import Watchdog
from crewlet import topics
from crewlet.a2a.colleagues import Colleagues
from crewlet.broker import open_broker
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company, NodeSettings, checked_settings, load_company
from crewlet.coordination.leases import BucketLeases
from crewlet.errors import NodeRefused
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import OrgStarted, OrgStopped, TaskAssigned
from crewlet.handlers import Strays
from crewlet.inbound.drained import AT_ONCE
from crewlet.inbound.followers import Followers
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.letters import read_together
from crewlet.inbound.lookup import Look, Lookups
from crewlet.inbound.outages import Outages
from crewlet.inbound.router import Router
from crewlet.inbound.running import Turns
from crewlet.inbound.services import Services
from crewlet.node.brakes import SeatBrakes
from crewlet.node.data_folder import DataFolder
from crewlet.node.duties import duties_of
from crewlet.node.ears import Ears
from crewlet.node.edge import WebhookEdge
from crewlet.node.fleet import FleetView
from crewlet.node.hands import Hands
from crewlet.node.mailboxes import ensure_mailboxes, first_mailboxes
from crewlet.node.pause_watch import PauseWatch
from crewlet.node.pauses import Pauses
from crewlet.node.place import Place
from crewlet.node.reconcile import Reconcile
from crewlet.node.shared_fleet import SharedFleet
from crewlet.node.verbs import Operators
from crewlet.node.workshop import Reflect, Workshop
from crewlet.queue import Published, Publisher
from crewlet.queue.publisher import UNKNOWN_AFTER_S
from crewlet.runs.runs import Runs
from crewlet.web import WebServer, make_app

FLUSH_S: Final = 2.0

log = structlog.get_logger(__name__)


class Node:
    """One process's share of a company.

    `turn` works every seat that has no handler of its own in the company's file; `reflect`
    is given each finished turn; `lookups` know, by source, the conversations that payloads do not
    name. `web` false opens no port, `admin` false no socket; `folder`
    is where handlers are looked for and commands run. `watchdog` lets the process leave with
    code 75 when its loop stood still for longer than its leases last. `apply` puts the company in
    the place of the active revision, which it works by otherwise (docs/guide/revisions.md).
    `strategy` says which node works what, the same one on every node (docs/guide/fleet.md). Use it
    as `async with Node(...) as node:`; leaving the block drains: what runs ends or is handed back,
    nothing stays behind. ConfigError for settings that cannot be.
    """

    def __init__(
        self,
        company: Company | Path | str,
        *,
        turn: Callable[..., Any] | None = None,
        reflect: Reflect | None = None,
        lookups: Mapping[str, Look] | None = None,
        settings: NodeSettings | None = None,
        data: Path | str = ".crewlet",
        web: bool = True,
        admin: bool = True,
        folder: Path | None = None,
        broker: CompanyBroker | None = None,
        clock: Clock | None = None,
        watchdog: bool = False,
        apply: bool = False,
        strategy: Strategy = fair_shares,
    ) -> None:
        self.company = company if isinstance(company, Company) else load_company(Path(company))
        self.settings = checked_settings(settings or NodeSettings(), own_broker=broker is None)
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
        self._lookups = Lookups(lookups or {}, folder)
        self._web = WebServer() if web else None
        self._admin = admin
        self._apply = apply
        self._strategy = strategy
        self._given_broker = broker
        self._closers = AsyncExitStack()
        self._drained: NodeDrained | None = None
        self._watchdog = Watchdog(self._timing.valid_s) if watchdog else None

    # -- life -------------------------------------------------------------------------

    async def start(self) -> None:
        """Everything, in order. Raises a CrewletError with the way out, or a BrokerError where the
        broker does not answer; then nothing of it is left."""
        try:
            await self._start()
        except BaseException:
            await self._closers.aclose()
            raise

    async def _start(self) -> None:
        self.hands = self._built(self.company)
        if self._folder is not None:
            self._folder.hold()
            self._closers.callback(self._folder.release)
        self.broker = await self._open_broker()
        self._closers.push_async_callback(self.broker.stop)
        self.queue = Publisher(self.broker, node_id=self.node_id, clock=self.clock)
        self.edge = WebhookEdge(lambda: self.company, self.queue, self.clock)
        self.ledger = Ledger(self.broker.store)
        self.pauses = Pauses(self.broker.store, self.queue, self.clock)
        self._colleagues = Colleagues(
            lambda: self.company, self.broker, self.queue, self.ledger, self.clock
        )
        self.channels = self._colleagues.channels
        self._shared = SharedFleet(
            self, BucketLeases(self.broker.store), self._timing, self.settings.node.labels
        )
        self.fleet: FleetView = self._shared
        self.reconcile = Reconcile(self, self._built)
        await self.reconcile.begin(alone=self._alone, forced=self._apply)
        in_flight = await ensure_mailboxes(self.broker, first_mailboxes(self.company))
        spec = self._spec(in_flight)
        self.runtime = SeatRuntime(spec, clock=self.clock, fallen=self._on_fallen)
        self._closers.push_async_callback(self.runtime.stop)
        self.pause_watch = PauseWatch(
            self.broker.store, self.pauses, self.turns, lambda: self.runtime
        )
        self._closers.push_async_callback(self.pause_watch.stop)
        self.pause_watch.start()
        try:
            await self.runtime.start()
        except IdTaken as error:
            raise NodeRefused(
                f"{error}: two processes must not share a node id; give this one another "
                "(`node: {id: ...}` in its node file, or CREWLET_NODE_ID)"
            ) from None
        await self._open_faces()
        if self._watchdog is not None:
            self._watchdog.arm()
            self._closers.callback(self._watchdog.disarm)
        self.edge.ready = True
        seats = tuple(seat.handle for seat in self.company.agents())
        self._record(types.ORG_STARTED, OrgStarted(company=self.company.name, seats=seats))
        log.info("node_started", node=self.node_id, company=self.company.name, seats=len(seats))

    async def _open_faces(self) -> None:
        if self._web is not None and self._has("ingress"):
            api = self.settings.api
            await self._web.start(make_app(self.edge), api.host, api.port)
            self._closers.push_async_callback(self._web.stop)
        if self._has("ingress"):
            ears = Ears(self.edge)
            self._closers.push_async_callback(ears.stop)
            await ears.follow(self.company)
            self.reconcile.tell(ears.follow)
        self._closers.push_async_callback(self.reconcile.stop)
        await self.reconcile.start()
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

    def _on_fallen(self, reason: str) -> None:
        """The actors came down by themselves: leave, and let the next start reclaim."""
        log.critical("node_fallen", reason=reason)
        self.failed = True
        self.stopping.set()

    async def drain(self, bound_s: float | None = None) -> NodeDrained:
        """No new turns; running ones end within the bound, then they are cut and handed back."""
        if self._drained is None:
            if self._watchdog is not None:  # a slow shutdown is no reason for a crude one
                self._watchdog.disarm()
            self.edge.draining = True
            self.stopping.set()  # there is no way back
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

    async def send(
        self, handle: str, text: str, *, sender: str = "", within_s: float = UNKNOWN_AFTER_S
    ) -> Published:
        """Put a task into a seat's inbox; returns once it is stored. Raises NodeRefused for a
        handle that is no agent seat, PublishUnknown where the broker did not say in time."""
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
        return await self.queue.publish(topics.inbox(handle), event, within_s=within_s)

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
        make = {
            INBOX: self._workshop.inbox,
            CONTROL: self._workshop.control,
            REFLECT: self._workshop.reflect,
        }
        return make[box](handle)

    async def holds_of(self, handle: str) -> Sequence[str]:
        """The holds that the seat's inbox is taken up with; a pause may have come since."""
        return await self._workshop.holds_of(handle)

    # -- what it is made of -----------------------------------------------------------

    def _spec(self, in_flight: frozenset[Mailbox]) -> NodeSpec:
        followers = Followers(self.broker.store)
        brakes, store = SeatBrakes(lambda: self.runtime), self.broker.store
        self.outages = Outages(brakes, self.queue, self.clock)
        self._closers.push_async_callback(self.outages.stop)
        self.runs = Runs(store, self.queue, self.ledger, brakes, self.clock, self.node_id)
        services = Services(
            company=lambda: self.company,
            node_id=self.node_id,
            queue=self.queue,
            ledger=self.ledger,
            followers=followers,
            turns=self.turns,
            clock=self.clock,
            brakes=brakes,
            outages=self.outages,
            runs=self.runs,
            asks=self._colleagues.asking,
            outboxes=(self._colleagues.answering,),
            data=self._folder.path if self._folder is not None and self._admin else None,
        )
        self._workshop = Workshop(
            lambda: self.company,
            lambda: self.hands,
            services,
            self.broker,
            self.pauses,
            self._reflect,
            in_flight if self._alone else frozenset(),
        )
        self.reconcile.tell(self.outages.revised)
        seal = self._folder.seal if self._folder is not None else ""
        duties = duties_of(self, self._shared, {"channels": self._colleagues.sweep.run})
        place = Place(
            self, self._shared, self._workshop, duties, self._strategy, alone=self._alone, seal=seal
        )
        return NodeSpec(
            self.broker,
            router=self._router(followers) if self._has("ingress") else None,
            reclaim_router=self._alone and topics.inbound() in in_flight,
            fleet=place.spec(),
        )

    def _router(self, followers: Followers) -> Consumed:
        router = Router(
            lambda: self.company,
            queue=self.queue,
            followers=followers,
            store=self.broker.store,
            clock=self.clock,
            lookups=self._lookups,
        )
        return Consumed(topics.inbound(), read_together, router.run, several)

    def _built(self, company: Company) -> Hands:
        """Who works the seats of a company here; ConfigError where that cannot be."""
        self._lookups.check(company)
        return Hands(company, self._turn, self.turns, self.strays, self._company_folder)

    @property
    def _timing(self) -> Timing:
        return self.settings.lease

    @property
    def _alone(self) -> bool:
        """Nobody else can reach this broker: it is in this process, or its child."""
        return self.settings.stream.alone

    def _has(self, role: str) -> bool:
        """A node of no stated role has all of them."""
        roles = self.settings.node.roles
        return not roles or role in roles

    def _record(self, event_type: str, body: OrgStarted | OrgStopped) -> None:
        event = Event.new(event_type, at=self.clock.now(), trace=Trace.root(), body=body)
        self.queue.record_soon(event)


def several() -> BatchOptions:
    """What is routed side by side; nobody waits for company."""
    return BatchOptions(max_batch=AT_ONCE)
