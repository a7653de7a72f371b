"""All of a node's part in the talk between seats, put together."""

from __future__ import annotations

from collections.abc import Callable

from actors.ports import Clock
from crewlet.a2a.answering import Answering
from crewlet.a2a.asking import Asking
from crewlet.a2a.channels import Channels
from crewlet.a2a.closing import Closing
from crewlet.a2a.sweep import Sweep
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company
from crewlet.inbound.ledger import Ledger
from crewlet.queue import Publisher


class Colleagues:
    """`asking` is for the desks of turns, `answering` an outbox of theirs, `sweep` a duty."""

    def __init__(
        self,
        company: Callable[[], Company],
        broker: CompanyBroker,
        queue: Publisher,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self.channels = Channels(broker.store)
        closing = Closing(self.channels, queue, clock)
        self.asking = Asking(company, self.channels, closing, queue, clock)
        self.answering = Answering(self.channels, closing)
        self.sweep = Sweep(company, self.channels, self.answering, ledger, broker, clock)
