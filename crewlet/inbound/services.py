"""What every seat's dispatch shares on one node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from actors.ports import Clock
from crewlet.company import Company
from crewlet.inbound.desk import Asks
from crewlet.inbound.followers import Followers
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.outages import Outages
from crewlet.inbound.outbox import Outbox
from crewlet.inbound.running import Turns
from crewlet.inbound.work import Brakes
from crewlet.queue import Publisher
from crewlet.runs.runs import Runs


class Services(Struct, frozen=True):
    """`company` is read anew for each partition: a revision may have come. `asks` is where turns
    ask colleagues, `outboxes` what they owe to others, `data` the folder that the node answers on
    where it does."""

    company: Callable[[], Company]
    node_id: str
    queue: Publisher
    ledger: Ledger
    followers: Followers
    turns: Turns
    clock: Clock
    brakes: Brakes
    outages: Outages
    runs: Runs
    asks: Asks | None = None
    outboxes: tuple[Outbox, ...] = ()
    data: Path | None = None
