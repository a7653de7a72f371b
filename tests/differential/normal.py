"""What a script may not ask, and what is not compared: every allowance, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.delivery import Delivery, Mailbox, Retry, Verdict
from crewlet.broker.port import CompanyBroker

ONE_AT_A_TIME: Final = "a fetch is outstanding"
"""A second fetch beside a parked one is refused by both, as the port says, and no script asks
for it: at JetStream the refusal ends the parked one's pull as well (test_cases.py)."""


def settled_in_order(
    verdicts: list[tuple[Delivery, Verdict]],
) -> list[tuple[Delivery, Verdict]]:
    """Retries of one settle that are due together come back by position at JetStream (it sorts
    what one tick of its timer finds), and in the twin. A tick between two of them would tell
    them apart, so they are said in that order."""
    retries = iter(
        sorted(
            (pair for pair in verdicts if isinstance(pair[1], Retry)),
            key=lambda pair: pair[0].position,
        )
    )
    return [next(retries) if isinstance(pair[1], Retry) else pair for pair in verdicts]


async def owners_begin_again(client: CompanyBroker, boxes: Sequence[Mailbox]) -> list[int]:
    """After the broker came back, each mailbox's owner reclaims: nats-server forgets its
    redelivery queue, and nothing else brings that mail back before its window ends."""
    return [await client.reclaim(box) for box in boxes]
