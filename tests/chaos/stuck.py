"""Why mail is not worked: what the broker and the owners say of the seats that have some left."""

from __future__ import annotations

import json
from typing import Any

from nats.errors import Error as NatsError

from crewlet import topics
from crewlet.broker import names
from tests.chaos.fleet import Fleet

OF_A_CONSUMER = ("num_pending", "num_ack_pending", "num_redelivered", "num_waiting")


async def stuck(fleet: Fleet) -> list[str]:
    """A line for each seat that has mail left, and its owner's own words."""
    waiting = set(fleet.waits_for())
    seats = {key.partition(".")[0] for key, id in fleet.recorded.sent.items() if id in waiting}
    owners = fleet.owners()
    lines = []
    for seat in sorted(seats):
        keys = [id for key, id in fleet.recorded.sent.items() if key.startswith(f"{seat}.")]
        left = [id for id in keys if id in waiting]
        lines.append(f"{seat} of {owners[seat]}: {len(left)} left of {len(keys)}: {left[:4]}")
        lines.append(f"  consumer: {await _consumer(fleet, seat)}")
        if owners[seat]:
            node = fleet.node(owners[seat])
            for verb, args in (("seat.show", {"handle": seat}), ("why", {"handle": seat})):
                lines.append(f"  {verb}: {json.dumps(await node.call(verb, **args))[:1500]}")
    lines.append(f"stream: {await _ask(fleet, f'STREAM.INFO.{names.AGENT}', ('state', 'cluster'))}")
    return lines


async def _consumer(fleet: Fleet, seat: str) -> str:
    name = names.consumer(topics.inbox_of(seat))
    fields = (*OF_A_CONSUMER, "delivered", "ack_floor", "cluster", "paused", "error")
    return await _ask(fleet, f"CONSUMER.INFO.{names.AGENT}.{name}", fields)


async def _ask(fleet: Fleet, verb: str, fields: tuple[str, ...]) -> str:
    try:
        answer = await fleet.client.request(f"$JS.API.{verb}", b"", timeout=5)
    except (NatsError, TimeoutError) as error:
        return repr(error)
    info: dict[str, Any] = json.loads(answer.data)
    return json.dumps({field: info[field] for field in fields if field in info})
