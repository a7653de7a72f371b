"""Thespian actors on one asyncio loop."""

from actors.system.actor import Actor, OutsideHandler, handles
from actors.system.address import Address
from actors.system.base import AsyncioSystemBase
from actors.system.clock import LoopClock, SystemClock
from actors.system.messages import ChildFailed, DeadLetter, EffectEnded, Snapshot, Terminated
from actors.system.refusal import Refused
from actors.system.supervision import Supervision
from actors.system.virtual import Deadlock, VirtualLoop, VirtualTime, run_virtual

__all__ = [
    "Actor",
    "Address",
    "AsyncioSystemBase",
    "ChildFailed",
    "DeadLetter",
    "Deadlock",
    "EffectEnded",
    "LoopClock",
    "OutsideHandler",
    "Refused",
    "Snapshot",
    "Supervision",
    "SystemClock",
    "Terminated",
    "VirtualLoop",
    "VirtualTime",
    "handles",
    "run_virtual",
]
