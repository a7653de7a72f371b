"""What of a drain may be routed at the same time: whatever has no conversation in common.

Within one, and for copies of one delivery, the order is that of the mailbox, each after the last
has ended: whoever is addressed first follows what comes second.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from crewlet import sources
from crewlet.events import Event
from crewlet.events.types import RawWebhook
from crewlet.sources import Notification, Skip


class Reading(Struct, frozen=True):
    """A delivery as far as it could be read: without its `raw` form there is a `fault`."""

    event: Event
    raw: RawWebhook | None = None
    parsed: Sequence[Notification | Skip] = ()
    fault: str = ""


def read(event: Event) -> Reading:
    try:
        raw = event.read(RawWebhook)
        body = raw.body
    except ValueError as error:  # no such body, or no base64 in it
        return Reading(event, fault=str(error))
    return Reading(event, raw, sources.parse(raw.vendor, raw.headers, body))


def keys_of(reading: Reading) -> frozenset[str] | None:
    """What a delivery may have in common with others; None where only a lookup tells."""
    found = [one for one in reading.parsed if isinstance(one, Notification)]
    if any(one.verdict == "lookup" for one in found):
        return None
    keys = {key for one in found for key in (one.partition_key, one.conversation_identity)}
    return frozenset((keys | {f"id:{reading.event.id}"}) - {""})


def predecessors(keys: Sequence[Collection[str] | None]) -> Sequence[frozenset[int]]:
    """Which of those before it each one waits for; they have waited for their own. None waits for
    all of them, and all that follow wait for it."""
    last: dict[str, int] = {}
    alone: frozenset[int] = frozenset()
    waits: list[frozenset[int]] = []
    for at, own in enumerate(keys):
        if own is None:
            waits.append(frozenset(range(at)))
            last, alone = {}, frozenset({at})
        else:
            waits.append(frozenset(last[key] for key in own if key in last) or alone)
            last.update(dict.fromkeys(own, at))
    return waits
