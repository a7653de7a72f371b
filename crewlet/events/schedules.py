"""The bodies of what the scheduler publishes."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

FiredOutcome: TypeAlias = Literal["fired", "skipped_catchup", "no_mailbox"]

FIRED: Final = "fired"
SKIPPED_CATCHUP: Final = "skipped_catchup"
NO_MAILBOX: Final = "no_mailbox"


class ScheduledTask(Struct, frozen=True, kw_only=True):
    """The body of a `task_assigned` that a schedule gives. `label` is the time it is for, as the
    schedule's zone shows it; `timeout_s` is how long its turn may take."""

    handle: str
    text: str
    sender: str
    subject: str
    schedule: str
    scope: str
    label: str
    timeout_s: float


class ScheduledTaskFired(Struct, frozen=True, kw_only=True):
    """What became of one fire, or of several that were missed together.

    `fired`: the task `task_id` is in the inbox of `agent_role`, `late_s` after its time.
    `no_mailbox`: there is no such inbox. `skipped_catchup`: nobody looked in time for `missed`
    fires from `first` to `label` (and for `more` than are counted); no task stands for them.
    """

    schedule: str
    scope_type: str
    scope: str
    label: str
    outcome: FiredOutcome
    summary: str
    agent_role: str = ""
    task_id: str = ""
    late_s: float = 0.0
    missed: int = 0
    first: str = ""
    more: bool = False
