"""A twin with a fault parts from JetStream over a script that is meant for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from actors.delivery import Delivery, HandBack
from crewlet.broker.memory_mailbox import Held, MemoryMailbox
from tests.differential import port_play
from tests.differential.differ import Bench
from tests.differential.port_steps import Fetch, Script
from tests.differential.test_cases import PORT, TWO, say

_hand_out = MemoryMailbox._hand_out


def _last_first(box: MemoryMailbox, position: int) -> None:
    if box._requeue(position):
        box._again.rotate(1)
        box.serve()


def _at_once(box: MemoryMailbox, position: int, delay_s: float) -> None:
    box.hand_back(position)


def _uncounted(box: MemoryMailbox, held: Held) -> Delivery:
    held.count = min(held.count, 1)
    return _hand_out(box, held)


def _nothing(box: MemoryMailbox) -> None:
    """It restarts and forgets nothing."""


IN_ORDER: Final[Script] = (
    *TWO,
    Fetch(0, 2, 0),
    say(0, (1, HandBack())),
    say(0, (0, HandBack())),
    Fetch(0, 2, 0),
)

FAULTS: Final[dict[str, tuple[str, Callable[..., Any], Script]]] = {
    "a hand-back overtakes those before it": (
        "hand_back",
        _last_first,
        IN_ORDER,
    ),
    "a retry does not wait": (
        "retry",
        _at_once,
        PORT["a retry takes what is queued out of the queue"],
    ),
    "deliveries are not counted on": (
        "_hand_out",
        _uncounted,
        PORT["what the broker gave up on stays where it is"],
    ),
    "a restart forgets nothing": (
        "restarted",
        _nothing,
        PORT["a broker that was killed forgets in which order mail was handed back"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(bench: Bench, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken, script = FAULTS[fault]
    monkeypatch.setattr(MemoryMailbox, name, broken)
    assert bench.difference(port_play.Player, script) is not None
