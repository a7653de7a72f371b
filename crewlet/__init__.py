"""crewlet: a durable runtime for companies of AI agents.

Names are loaded when they are asked for: the command line must be able to obey a signal
before it has imported a broker's client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crewlet.version import __version__

if TYPE_CHECKING:
    from crewlet.company import Company, NodeSettings, load_company
    from crewlet.errors import TurnStopped
    from crewlet.node import Node
    from crewlet.turn import (
        Abandon,
        Ack,
        Answered,
        Defer,
        Nak,
        Outcome,
        Suspend,
        Turn,
        TurnEvent,
        Unavailable,
    )

_HOME = {
    "Abandon": "crewlet.turn",
    "Ack": "crewlet.turn",
    "Answered": "crewlet.turn",
    "Company": "crewlet.company",
    "Defer": "crewlet.turn",
    "Nak": "crewlet.turn",
    "Node": "crewlet.node",
    "NodeSettings": "crewlet.company",
    "Outcome": "crewlet.turn",
    "Suspend": "crewlet.turn",
    "Turn": "crewlet.turn",
    "TurnEvent": "crewlet.turn",
    "TurnStopped": "crewlet.errors",
    "Unavailable": "crewlet.turn",
    "load_company": "crewlet.company",
}

__all__ = [
    "Abandon",
    "Ack",
    "Answered",
    "Company",
    "Defer",
    "Nak",
    "Node",
    "NodeSettings",
    "Outcome",
    "Suspend",
    "Turn",
    "TurnEvent",
    "TurnStopped",
    "Unavailable",
    "__version__",
    "load_company",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crewlet' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
