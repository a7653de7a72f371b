"""One connection to the broker, and the few moves that nats-py's own verbs do not give.

What is done here by hand, with private members of the pinned nats-py (docs/adr/0003):

* sending is synchronous: a verb of nats-py may block behind a stalled socket, and it swallows
  the cancellation that a deadline is made of;
* a delivery reaches its receiver inside the read loop, without a queue and a task per message,
  and past nats-py's parser (crewlet/broker/quick.py);
* `barrier` is one: nats-py writes its PING ahead of the commands that wait in its buffer;
* an abandoned PING does not kill the read loop (a cancelled pong future does, in nats-py).
"""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog
from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.protocol import command

from actors.ports import NotLive, TooLarge, Unavailable
from crewlet.broker.asked import Asked, Question
from crewlet.broker.dial import (
    HEADROOM_BYTES,
    RECORD_BYTES,
    Address,
    Hooks,
    dial,
    hang_up,
)
from crewlet.broker.domain import addressed
from crewlet.broker.outgoing import queue, take_back, take_back_all, write, write_or_wait
from crewlet.broker.route import Deliver, Message, Route, header_block, status
from crewlet.errors import BrokerRefused

log = structlog.get_logger(__name__)

Hear = Callable[[], None]

REDIAL_S: Final = 60.0
_PING: Final = b"PING\r\n"


class NoResponders(Unavailable):
    """Nobody serves the subject: what was sent went nowhere."""


SOON_S: Final = 0.002
"""The longest that an acknowledgement waits for company: what twenty quick turns take. They end
with a pull, which takes all of them along in one write."""


class Wire:
    """A connection that comes back for ever, until `close`.

    `on_up` is called after each connect but the first, `on_down` when a connection is lost;
    both inside the loop, neither may block.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: Client | None = None
        self._live = False
        self._routes: dict[int, Route] = {}
        self._numbers = itertools.count(1)
        self._barriers: set[asyncio.Future[None]] = set()
        self._asked = Asked()
        self._linked = True
        self._inbox = f"_INBOX.{secrets.token_hex(12)}"
        self._gone: asyncio.Future[None] | None = None
        self._redialing: asyncio.Task[None] | None = None
        self._next = False
        self._soon: asyncio.TimerHandle | None = None
        self.on_up: list[Hear] = []
        self.on_down: list[Hear] = []

    @property
    def connected(self) -> bool:
        client = self._client
        return self._live and self._linked and client is not None and client.is_connected

    @property
    def body_limit(self) -> int:
        """The largest body that fits this server with its headers and a dead letter's."""
        announced = self._client.max_payload if self._client is not None else 2 * RECORD_BYTES
        return min(RECORD_BYTES, announced - HEADROOM_BYTES)

    async def open(self, wait_s: float) -> None:
        """Connect for the first time: the errors are those of `dial`."""
        self._adopt(await dial(self._address, self._hooks(), wait_s))
        self._live = True
        self.route(f"{self._inbox}.*", self._asked.answered)

    async def close(self) -> None:
        """Leave; every waiting request fails with NotLive. What was sent is flushed."""
        self._live = False
        self._asked.fail(NotLive("this client of the broker was stopped"))
        if self._redialing is not None:
            self._redialing.cancel()
            await asyncio.wait({self._redialing}, timeout=3)
        client, self._client = self._client, None
        if client is not None:
            await hang_up(client)
        self._routes.clear()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def check_live(self) -> None:
        """NotLive before `open` and after `close`."""
        if not self._live:
            raise NotLive("this client of the broker is not started, or was stopped")

    def set_servers(self, servers: list[str]) -> None:
        """Dial these from now on: an embedded server came back on another port."""
        self._address = replace(self._address, servers=tuple(servers))
        if self._client is not None:
            self._client.set_server_pool(servers)

    # -- sending ---------------------------------------------------------------------------

    def send(
        self,
        subject: str,
        body: bytes = b"",
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Put a message on its way, in order with all others; answers what `forget` takes.

        Without a connection it waits for the next one. NotLive, TooLarge (nothing was sent)
        or Unavailable (too much waits already).
        """
        client = self._current()
        if len(body) > self.body_limit:
            raise TooLarge(f"{len(body)} bytes: a message may have {self.body_limit}")
        subject = addressed(subject, self._address.domain)
        if headers:
            block = header_block(headers)
            if len(block) > HEADROOM_BYTES:
                raise TooLarge(f"{len(block)} bytes of headers: there may be {HEADROOM_BYTES}")
            data = command.hpub_cmd(subject, reply, block, body)
        else:
            data = command.pub_cmd(subject, reply, body)
        self._push(client, data)
        return data

    def send_soon(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """`send` for several, and whatever goes out next may take them along: each write to the
        socket costs more than an acknowledgement, and a drain of twenty conversations has
        twenty of them."""
        client = self._current()
        data = b"".join([command.pub_cmd(subject, "", body) for subject, body in messages])
        queue(client, data)
        if self._soon is None and not self._next:
            loop = asyncio.get_running_loop()
            self._soon = loop.call_later(SOON_S, self.flush)

    def forget(self, data: bytes) -> None:
        """Take back a message that still waits for a connection: its sender gave up on it."""
        client = self._client
        if client is not None and not client.is_connected:
            take_back(client, data)

    def forget_all(self, subjects: str) -> None:
        """The same for what goes to subjects that begin like this."""
        client = self._client
        if client is not None and not client.is_connected:
            take_back_all(client, f"PUB {subjects}".encode())

    async def request(
        self,
        subject: str,
        body: bytes = b"",
        *,
        wait_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """The answer. Unavailable after `wait_s`, or when the connection broke (the effect is
        unknown); NoResponders where nobody serves the subject; or the errors of `send`."""
        token, loop = str(next(self._numbers)), asyncio.get_running_loop()
        sent = self.send(subject, body, f"{self._inbox}.{token}", headers)
        question = self._asked.new(token, sent)
        # The deadline ends the question, not the task: that costs half of asyncio.timeout.
        deadline = loop.call_later(wait_s, self._late, question, wait_s)
        try:
            answer = await question.answer
        finally:
            deadline.cancel()
            self._asked.forget(token)
        if status(answer) == "503":
            raise NoResponders("nobody at the broker serves this request")
        return answer

    async def barrier(self, wait_s: float) -> bool:
        """True once the server has answered for everything sent before, and all that it had
        sent us was delivered. False when the connection was lost or it took too long."""
        client = self._current()
        if not client.is_connected or client._transport is None:
            return False
        write(client)
        loop = asyncio.get_running_loop()
        pong: asyncio.Future[bool] = loop.create_future()
        client._pongs.append(pong)
        client._transport.write(_PING)
        over: asyncio.Future[None] = loop.create_future()  # a pong that is cancelled kills nats-py
        pong.add_done_callback(lambda _: _end(over))
        self.lost()
        self._barriers.add(over)
        try:
            async with asyncio.timeout(wait_s):
                await over
        except TimeoutError:
            pass
        finally:
            self._barriers.discard(over)
        return pong.done()

    def lost(self) -> asyncio.Future[None]:
        """Done when the present connection is lost, or left."""
        if self._gone is None or self._gone.done():
            self._gone = asyncio.get_running_loop().create_future()
            self._gone.add_done_callback(self._end_barriers)
        return self._gone

    def _end_barriers(self, _: asyncio.Future[None]) -> None:
        """One callback for all: thousands that come and go would each search the others'."""
        for over in self._barriers:
            _end(over)

    # -- subscriptions ---------------------------------------------------------------------

    def new_inbox(self) -> str:
        return f"{self._inbox}-{next(self._numbers)}"

    def route(self, subject: str, deliver: Deliver) -> Route:
        """Receive what is sent to `subject` from now on, across reconnects."""
        route = Route(subject, deliver)
        self._attach(self._current(), route)
        return route

    async def unroute(self, route: Route, wait_s: float) -> bool:
        """Stop receiving. True: all that the server sent until then was delivered."""
        if not route.open:
            return True
        route.open = False
        client = self._current()
        if client.is_connected:
            self._push(client, command.unsub_cmd(route.sid, 0))
        try:
            return await self.barrier(wait_s)
        finally:
            self._detach(route)

    def drop(self, route: Route) -> None:
        """Stop receiving at once, whatever is on its way."""
        if not route.open:
            return
        route.open = False
        self._detach(route)
        client = self._client
        if client is not None and client.is_connected:
            self._push(client, command.unsub_cmd(route.sid, 0))

    # -- inside ----------------------------------------------------------------------------

    def _current(self) -> Client:
        self.check_live()
        if self._client is None:
            raise Unavailable("the broker is being dialed")
        return self._client

    def _push(self, client: Client, data: bytes) -> None:
        queue(client, data)
        if not self._next:
            self._next = True
            asyncio.get_running_loop().call_soon(self._write_next)

    def _write_next(self) -> None:
        """In the loop's next turn, with all that has joined until then."""
        self._next = False
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the socket takes it without waiting. Who sends what the
        server is to answer at once spares a turn of the loop."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._client is not None:
            write_or_wait(self._client)

    def _attach(self, client: Client, route: Route) -> None:
        client._sid += 1
        route.sid = client._sid
        # No limit: nothing ever waits here, so nothing may be dropped as a slow consumer's.
        subscription = Subscription(client, route.sid, route.subject, pending_bytes_limit=0)
        subscription._pending_queue = route  # type: ignore[assignment]
        client._subs[route.sid] = subscription
        self._routes[route.sid] = route
        if client.is_connected:  # else the reconnect replays the table
            self._push(client, command.sub_cmd(route.subject, "", route.sid))

    def _detach(self, route: Route) -> None:
        self._routes.pop(route.sid, None)
        if self._client is not None:
            self._client._subs.pop(route.sid, None)

    def _adopt(self, client: Client) -> None:
        self._client = client
        routes, self._routes = list(self._routes.values()), {}
        for route in routes:
            self._attach(client, route)

    def _late(self, question: Question, wait_s: float) -> None:
        if not question.answer.done():
            self.forget(question.sent)
            late = Unavailable(f"the broker did not answer within {wait_s:.1f} s")
            question.answer.set_exception(late)

    # -- what the connection says ----------------------------------------------------------

    def _hooks(self) -> Hooks:
        return Hooks(self._heard_down, self._heard_up, self._heard_closed)

    async def _heard_down(self) -> None:
        self._went_down()

    async def _heard_up(self) -> None:
        if self._linked:
            self._came_up()

    def set_linked(self, linked: bool) -> None:
        """A leaf's own connection to the members broke, or came back: to us as ours would. Its
        server answers all the same, and what cannot leave it, nobody serves."""
        before, self._linked = self.connected, linked
        if before and not linked:
            self._went_down()
        elif self.connected and not before:
            self._came_up()

    def _went_down(self) -> None:
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if not self._live or self._client is None:
            return
        log.warning("broker_disconnected")
        # What was written can no longer be answered; what still waits will be sent.
        queued = self._client._pending
        self._asked.fail(Unavailable("the connection broke before the broker answered"), queued)
        self._tell(self.on_down)

    def _came_up(self) -> None:
        log.info("broker_reconnected")
        self._tell(self.on_up)

    async def _heard_closed(self) -> None:
        """nats-py gives up for good on an error of the server that it did not foresee."""
        if self._live and (self._redialing is None or self._redialing.done()):
            self._client = None
            self._asked.fail(Unavailable("the broker closed the connection"))
            self._redialing = asyncio.create_task(self._redial())

    async def _redial(self) -> None:
        while self._live:
            try:
                self._adopt(await dial(self._address, self._hooks(), REDIAL_S))
            except (BrokerRefused, Unavailable) as error:
                log.warning("broker_redial_failed", error=str(error))
                await asyncio.sleep(random.uniform(1, 2))  # noqa: S311
            else:
                await self._heard_up()
                return

    def _tell(self, listeners: list[Hear]) -> None:
        for listener in list(listeners):
            try:
                listener()
            except Exception:
                log.exception("broker_listener_failed")


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
