"""What is asked of a consumer, kept outside its incarnations.

An incarnation that broke is followed by one that reads here what it should be doing: which
boxes are attached and for whom, which brakes lie over them, who waits for an answer. It is the
only state that two incarnations share, and only their own actor writes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from actors.messages import Stepped
from actors.ports import Consumed
from actors.system import Address
from actors.tenure import Tenure


class BoxPlan(Struct):
    """`attached` is the wish, not the fact; `attacher` and `detacher` wait to hear that it has
    become one."""

    consumed: Consumed | None = None
    attached: bool = False
    epoch: int = 0
    reclaim: bool = False
    tenure: Tenure | None = None
    quiesced: bool = False
    holds: dict[str, None] = field(default_factory=dict)
    watcher: Callable[[Stepped], None] | None = None
    attacher: Address | None = None
    detacher: Address | None = None


class Plan(Struct):
    """Of one consumer. `life` counts its incarnations; `asker` waits to hear that it is
    established, `drainer` that it has drained; `leaving`: it drains, or has drained; `cut` are the
    conversations it gave up."""

    name: str
    boxes: dict[str, BoxPlan]
    life: int = 0
    paused: bool = False
    leaving: bool = False
    asker: Address | None = None
    drainer: Address | None = None
    cut: list[str] = field(default_factory=list)


def plan_of(name: str, boxes: Mapping[str, Consumed | None]) -> Plan:
    """A consumer of these boxes that is attached to none of them yet."""
    return Plan(name, {box: BoxPlan(consumed) for box, consumed in boxes.items()})
