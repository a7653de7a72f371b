"""Places where a test build ends its own process, or stops it: `CREWLET_FAILPOINT=NAME:NTH=HOW`.

The N-th time that NAME is reached the process sends itself SIGKILL (`kill`) or SIGSTOP (`stop`).
Several are separated by commas. Unset, a place costs one comparison. Only shells have places:
a machine does nothing that could be interrupted.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "CREWLET_FAILPOINT"
ALLOWED: Final = "CREWLET_TEST_BUILD"
"""Without this variable `crewlet up` refuses to start with a failpoint."""

NAMES: Final = (
    "before_lease_cas",
    "after_lease_cas",
    "before_attach",
    "after_fetch",
    "before_turn",
    "after_effect",
    "before_complete",
    "after_complete_before_ack",
    "after_dlq_before_term",
    "mid_defer",
    "before_release",
    "after_release",
    "mid_batch_linger",
    "after_channel_opened",
    "after_request_published",
    "after_answer_kept",
    "after_answer_published",
    "after_channel_closed",
    "after_run_opened",
    "after_fire_claimed",
    "after_fire_published",
    "mid_config_apply",
    "after_config_activated",
    "mid_config_take",
)

NOT_YET: Final = {
    "after_pin": "the broker pins no client: the fence is checked at the completion",
    "mid_eventstore_commit": "there is no event store",
    "mid_page_scatter": "no read is scattered over a fleet",
}
"""Places of the plan whose feature does not exist."""

_HOW: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

_armed: dict[str, tuple[int, signal.Signals]] = {}


def reached(name: str) -> None:
    """The process is at this place."""
    if _armed:
        _hit(name)


def arm(text: str) -> None:
    """ValueError for what names no place, no count from 1, or no way to end."""
    _armed.clear()
    for one in filter(None, text.split(",")):
        where, _, how = one.partition("=")
        name, _, nth = where.partition(":")
        if name not in NAMES or how not in _HOW or not nth.isdecimal() or int(nth) < 1:
            raise ValueError(
                f"{one!r} is no failpoint: write NAME:NTH=kill or NAME:NTH=stop, "
                f"NAME one of {', '.join(NAMES)}"
            )
        _armed[name] = (int(nth), _HOW[how])


def _hit(name: str) -> None:
    left, how = _armed.get(name, (0, signal.SIGKILL))
    if left == 1:
        os.kill(os.getpid(), how)
    if left:
        _armed[name] = (left - 1, how)
