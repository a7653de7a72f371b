"""The row of one run, and everything that may happen to it: a machine without I/O.

Every input is idempotent: what has happened to a row already leaves it as it is. What may not
happen raises IllegalInput and changes nothing. A row that is `told` is over, and stands there for
whoever says so a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crewlet.errors import CrewletError
from crewlet.events.work_items import WorkItem


class IllegalInput(CrewletError):
    """This may not happen to a run that stands so; nothing was changed."""

    code = "illegal_input"
    blame = "caller"


class State(Enum):
    RUNNING = "running"
    ASKING = "asking"
    """Parked on a question: it holds nothing, its seat has to be able to hear the answer."""
    RESUMING = "resuming"
    """A reply lies in the row, and whoever runs the work has not taken it."""
    COMPLETED = "completed"
    FAILED = "failed"


OVER: Final = frozenset({State.COMPLETED, State.FAILED})


class Notice(Struct, frozen=True):
    """What was said of a run, under the id and at the instant of the control message that said
    so: whoever finishes what another began repeats the same event."""

    id: str
    at: datetime
    text: str


class Reply(Struct, frozen=True):
    """The message that answers a question: its event as JSON. Until it is `taken` it is in the
    row's outbox, and nowhere else."""

    event_id: str
    event: str
    taken: bool = False


class Origin(Struct, frozen=True, kw_only=True):
    """The turn that suspended, where, and under which epoch of its seat. `depth` and `chain` are
    how often its work was handed on before: a run does not begin that count anew, and stays with
    the `work_item` of its turn."""

    turn_id: str
    node: str = ""
    epoch: int = 0
    agent_id: str = ""
    partition_key: str = ""
    conversation_identity: str = ""
    triggers: tuple[str, ...] = ()
    traceparent: str = ""
    depth: int = 0
    chain: tuple[str, ...] = ()
    work_item: WorkItem | None = None


class Run(Struct, frozen=True, kw_only=True):
    """One row. `node` is the one that opened it or took it over last."""

    handle: str
    run_id: str
    origin: Origin
    opened_at: datetime
    node: str = ""
    state: State = State.RUNNING
    question: Notice | None = None
    reply: Reply | None = None
    end: Notice | None = None
    told: bool = False

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def holds(self) -> bool:
        """Whether its seat may take nothing up: also while an end is still to be told."""
        return not self.told and self.state is not State.ASKING

    @property
    def outbox(self) -> Reply | None:
        """The reply that nobody has taken."""
        return None if self.reply is None or self.reply.taken else self.reply


# -- what may happen ------------------------------------------------------------------------


class Suspended(Struct, frozen=True, kw_only=True):
    """A turn says that the work goes on under this name."""

    origin: Origin
    at: datetime


class Adopted(Struct, frozen=True):
    """A node takes the seat. It changes the row, so that whoever had it changes it no more."""

    node: str


class Asked(Struct, frozen=True):
    """The run waits for an answer."""

    notice: Notice


class Replied(Struct, frozen=True):
    """The first message of its conversation after the question."""

    reply: Reply


class Taken(Struct, frozen=True):
    """Whoever runs the work has the reply."""


class Ended(Struct, frozen=True):
    """The work is over: `notice` has its result, or why it failed."""

    notice: Notice
    failed: bool = False


class HandedBack(Struct, frozen=True):
    """The reply that nobody took is in the inbox again, or is some turn's. A run that would have
    gone on with it waits for another."""


class Told(Struct, frozen=True):
    """The end is in the seat's inbox and on record."""


class Withdrawn(Struct, frozen=True):
    """The turn that opened it had lost its seat, or another turn had worked its triggers: there
    is nobody whom it concerns."""

    notice: Notice


Input: TypeAlias = (
    Suspended | Adopted | Asked | Replied | Taken | Ended | HandedBack | Told | Withdrawn
)


def opened(handle: str, run_id: str, given: Suspended) -> Run:
    """The row of a run that nobody has heard of."""
    origin, at = given.origin, given.at
    return Run(handle=handle, run_id=run_id, origin=origin, opened_at=at, node=origin.node)


def step(run: Run, given: Input) -> Run:
    """What the row is after it; the row itself where it had happened before."""
    kind = type(given)
    if (known := _KNOWN.get(kind)) is not None and known(run, given):
        return run
    change = _TABLE.get((run.state, kind))
    if change is None or (run.told and kind is not Suspended):
        raise IllegalInput(f"run {run.run_id} of {run.handle} {_stands(run)}: {_NEVER[kind]}")
    return change(run, given)


def _stands(run: Run) -> str:
    match run.state:
        case State.ASKING:
            return "waits for an answer"
        case State.RESUMING:
            return "has an answer that nobody took (`crewlet run take`)"
        case State.RUNNING:
            return "runs"
        case State.COMPLETED | State.FAILED:
            return f"has {run.state.value}"


_NEVER: Final[dict[type, str]] = {
    Suspended: "an older turn cannot suspend with it",
    Adopted: "nobody takes it over",
    Asked: "it cannot ask now",
    Replied: "it takes no reply",
    Taken: "there is no reply to take",
    Ended: "it cannot end again",
    HandedBack: "there is no reply to hand back",
    Told: "it cannot be over yet",
    Withdrawn: "it stays",
}

# -- what had happened before ---------------------------------------------------------------


def _suspended_before(run: Run, given: Suspended) -> bool:
    return run.origin.turn_id == given.origin.turn_id and not run.told


def _asked_before(run: Run, given: Asked) -> bool:
    return run.question is not None and run.question.id == given.notice.id


def _replied_before(run: Run, given: Replied) -> bool:
    return run.reply is not None and run.reply.event_id == given.reply.event_id


def _taken_before(run: Run, _: Taken) -> bool:
    return run.reply is not None and run.reply.taken


def _ended_before(run: Run, given: Ended | Withdrawn) -> bool:
    return run.end is not None and run.end.id == given.notice.id


def _handed_back_before(run: Run, _: HandedBack) -> bool:
    return run.outbox is None


def _told_before(run: Run, _: Told) -> bool:
    return run.told


_KNOWN: Final[dict[type, Callable[[Run, Any], bool]]] = {
    Suspended: _suspended_before,
    Asked: _asked_before,
    Replied: _replied_before,
    Taken: _taken_before,
    Ended: _ended_before,
    Withdrawn: _ended_before,
    HandedBack: _handed_back_before,
    Told: _told_before,
}

# -- what changes ---------------------------------------------------------------------------


def _again(run: Run, given: Suspended) -> Run:
    """A turn suspends with a run that is there. One that lost its seat changes nothing: what
    the seat's holder wrote since stands."""
    if given.origin.epoch < run.origin.epoch:
        raise IllegalInput(f"run {run.run_id} of {run.handle}: {_NEVER[Suspended]}")
    kept = State.RESUMING if run.outbox is not None else State.RUNNING
    return replace(run, origin=given.origin, node=given.origin.node, state=kept)


def _anew(run: Run, given: Suspended) -> Run:
    """A run that is over begins another life under its name, once its end has been told."""
    if not run.told:
        raise IllegalInput(f"run {run.run_id} of {run.handle} is ending: try again")
    return opened(run.handle, run.run_id, given)


def _adopted(run: Run, given: Adopted) -> Run:
    return replace(run, node=given.node)


def _asked(run: Run, given: Asked) -> Run:
    return replace(run, state=State.ASKING, question=given.notice, reply=None)


def _replied(run: Run, given: Replied) -> Run:
    return replace(run, state=State.RESUMING, reply=given.reply)


def _taken(run: Run, _: Taken) -> Run:
    assert run.reply is not None, "a run that resumes has a reply"
    return replace(run, state=State.RUNNING, reply=replace(run.reply, taken=True))


def _ended(run: Run, given: Ended) -> Run:
    """A reply that nobody took stays in the outbox: it goes back from there."""
    return replace(run, state=State.FAILED if given.failed else State.COMPLETED, end=given.notice)


def _handed_back(run: Run, _: HandedBack) -> Run:
    return replace(run, state=run.state if run.over else State.ASKING, reply=None)


def _told(run: Run, _: Told) -> Run:
    if run.outbox is not None:
        raise IllegalInput(f"run {run.run_id} of {run.handle} has a reply that nobody took")
    return replace(run, told=True)


def _withdrawn(run: Run, given: Withdrawn) -> Run:
    """Nobody waits for it, and nobody is told."""
    return replace(run, state=State.FAILED, end=given.notice, told=True)


_Table: TypeAlias = dict[tuple[State, type], Callable[[Run, Any], Run]]


def _everywhere(kind: type, change: Callable[[Run, Any], Run], *but: State) -> _Table:
    return {(state, kind): change for state in State if state not in but}


_TABLE: Final[_Table] = {
    **_everywhere(Suspended, _again, *OVER),
    **_everywhere(Adopted, _adopted),
    **_everywhere(Ended, _ended, *OVER),
    (State.COMPLETED, Suspended): _anew,
    (State.FAILED, Suspended): _anew,
    (State.RUNNING, Withdrawn): _withdrawn,
    (State.RUNNING, Asked): _asked,
    (State.ASKING, Asked): _asked,
    (State.ASKING, Replied): _replied,
    (State.RESUMING, Taken): _taken,
    (State.RESUMING, HandedBack): _handed_back,
    (State.COMPLETED, HandedBack): _handed_back,
    (State.FAILED, HandedBack): _handed_back,
    (State.COMPLETED, Told): _told,
    (State.FAILED, Told): _told,
}
