"""Why a seat is not working, from what is known of it: rules, pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from actors.mail import UNCONFIRMED
from actors.messages import BoxState
from actors.ports import MailboxState
from crewlet.a2a.channel import Channel
from crewlet.broker.port import Waiting
from crewlet.inbound.outage import Outage
from crewlet.inbound.outages import PROVIDER
from crewlet.inbound.running import RunningTurn
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.inbound.wakers import Waker
from crewlet.node.pauses import PAUSED, Pause
from crewlet.node.seats import outage_text
from crewlet.revisions.retirement import GRACE, SeatRecord
from crewlet.runs.live import RUN
from crewlet.runs.row import Run, State


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of the seat. `barred`: why each node may not work it, where none may. `box` is
    its inbox on this node, None where it is not here; `draining`: no seat starts anything here.
    `mail` and `oldest` are None while the broker does not answer, or has no such mailbox;
    `oldest_in_hand`: this node works on it. `asked`
    are its questions that wait for an answer, and for how many seconds; `waker` is the colleague
    who woke it most of late."""

    handle: str
    node: str
    owner: str | None
    barred: Sequence[str] = ()
    stopping: bool = False
    draining: bool = False
    behind: str = ""
    connected: bool = True
    box: BoxState | None = None
    turn: RunningTurn | None = None
    turn_s: float = 0.0
    failure: str = ""
    running: int = 0
    full: bool = False
    pause: Pause | None = None
    outage: Outage | None = None
    runs: tuple[Run, ...] = ()
    mail: MailboxState | None = None
    oldest: Waiting | None = None
    oldest_s: float = 0.0
    oldest_in_hand: bool = False
    in_hand: int = 0
    asked: tuple[tuple[Channel, float], ...] = ()
    waker: Waker | None = None


class Reason(Struct, frozen=True):
    """One reason; `code` is stable, `text` a sentence with the way out."""

    code: str
    text: str


KNOWN: Final = 10

Rule: TypeAlias = Callable[[Facts], Iterator[Reason]]


def reasons(facts: Facts) -> list[Reason]:
    """Every reason, the one that matters first: what stands further up makes what follows
    pointless to repair."""
    found = [reason for rule in RULES for reason in rule(facts)]
    return found or [_nothing(facts)]


def _node(facts: Facts) -> Iterator[Reason]:
    if facts.stopping:
        yield Reason("stopping", f"{facts.node} is stopping: it starts nothing; `crewlet up`")
    if not facts.connected:
        yield Reason(
            "broker",
            "the broker does not answer, as a cluster does not without most of its members "
            "(`crewlet node ls`); it works again by itself when it does",
        )


def _revision(facts: Facts) -> Iterator[Reason]:
    if facts.behind:
        again = "mend that, and `crewlet apply` the same file again"
        yield Reason("behind", f"{facts.node} works by an older revision, {facts.behind}; {again}")


def _owner(facts: Facts) -> Iterator[Reason]:
    if facts.owner is None and facts.barred:
        none = "; ".join(facts.barred[:KNOWN])
        way = "`crewlet node undrain`, `crewlet node label`, or its `placement` in the company file"
        yield Reason("unplaceable", f"no node may work it ({none}): {way}")
    elif facts.owner is None:
        yield Reason("no_owner", "no node works it now; `crewlet node ls` shows who is there")
    elif facts.owner != facts.node:  # which would say all this itself
        then = "when its session has ended another node takes it over; `crewlet node ls`"
        yield Reason("silent", f"{facts.owner} works it, and does not answer: {then}")
    elif facts.box is None:
        made = "its mailboxes are there and its brakes are known"
        yield Reason("not_here", f"{facts.node} holds it, and works it by itself once {made}")


def _attachment(facts: Facts) -> Iterator[Reason]:
    if facts.box is not None and not facts.box.attached:
        again = f"`crewlet seat attach {facts.handle}`"
        yield Reason("detached", f"its inbox is detached: {again}")
    if facts.connected and facts.mail is None:
        yield Reason("no_mailbox", f"it has no mailbox: `crewlet seat attach {facts.handle}`")


def _turn(facts: Facts) -> Iterator[Reason]:
    turn = facts.turn
    if turn is not None and turn.overdue:
        since = f"{turn.started_at:%Y-%m-%d %H:%M:%S} UTC"
        text = f"turn {turn.turn_id} runs since {since} and does not end: {turn.overdue}"
        way = f"`crewlet drain --on {facts.node}` stops the process, and its mail is worked anew"
        first = f"unless it was paused (`crewlet seat pause {facts.handle}`)"
        yield Reason("stuck", f"{text}; should it never end, {way} {first}")


def _brakes(facts: Facts) -> Iterator[Reason]:
    box = facts.box
    if box is None:
        return
    if box.paused and not facts.stopping:  # of which enough was said
        yield _let_go(facts)
    yield from (_hold(facts, hold) for hold in box.holds)
    if box.quiesced:
        yield Reason("quiesced", f"it is quiesced: `crewlet seat unquiesce {facts.handle}`")
    if box.deferred:
        yield Reason("deferred", "its handler put the work off; it goes on by itself when it said")


def _let_go(facts: Facts) -> Reason:
    if facts.draining:
        way = f"`crewlet node undrain {facts.node}`"
        return Reason("draining", f"{facts.node} drains, and starts nothing more: {way}")
    return Reason("moving", f"{facts.node} hands it to another node, once its turn has ended")


def _hold(facts: Facts, hold: str) -> Reason:
    handle, pause = facts.handle, facts.pause
    match hold:
        case _ if hold == PAUSED:
            who = f"{pause.by} paused it at {pause.at:%Y-%m-%d %H:%M:%S} UTC" if pause else "paused"
            return Reason("paused", f"{who}: `crewlet seat resume {handle}`")
        case _ if hold == UNCONFIRMED:
            why = f"{facts.node} cannot confirm its session"
            return Reason("unconfirmed", f"{why}: it works again by itself when the store answers")
        case _ if hold == PROVIDER and facts.outage is not None:
            text = f"its provider is {outage_text(facts.outage)}"
            return Reason(
                "provider", f"{text}, by itself; now: `crewlet seat release {handle} {hold}`"
            )
        case _ if hold == RUN:
            return Reason("run", _running(facts))
        case _ if hold == NO_HANDLER:
            return Reason(
                "no_handler",
                "nobody works it: give it a handler in the company file, and `crewlet apply` it",
            )
        case _:
            return Reason("held", f"it is held: `crewlet seat release {handle} '{hold}'`")


def _running(facts: Facts) -> str:
    """Which runs hold it: the one that has for longest first."""
    handle, runs = facts.handle, [run for run in facts.runs if run.holds]
    if not runs:
        return f"a run holds it: `crewlet run ls {handle}`"
    first = runs[0]
    more = f", and {len(runs) - 1} more: `crewlet run ls {handle}`" if len(runs) > 1 else ""
    command = "take" if first.state is State.RESUMING else "show"
    what = "an answer waits to be taken" if first.state is State.RESUMING else "it goes on"
    since = f"{first.opened_at:%Y-%m-%d %H:%M:%S} UTC"
    way = f"`crewlet run {command} {handle} {first.run_id}`"
    return f"run {first.run_id} holds it since {since}, {what}: {way}{more}"


def _slot(facts: Facts) -> Iterator[Reason]:
    if facts.box is None or not facts.box.running or facts.turn is not None:
        return
    if facts.full:
        why = f"it waits for a slot: {facts.running} turns run on {facts.node}"
        yield Reason("slot", f"{why} (`crewlet ps --on {facts.node}`), and it goes on by itself")
    else:
        yield Reason("starting", "it has mail in hand: its turn begins, or has just ended")


def _retries(facts: Facts) -> Iterator[Reason]:
    box = facts.box
    resting = box is not None and not box.running and facts.turn is None
    if facts.mail is not None and resting:  # else what is out may be in hand by now
        tried = facts.mail.in_flight - facts.in_hand
        why = f"; its last turn failed: {facts.failure}" if facts.failure else ""
        if tried == 1:
            yield Reason("retry", f"1 message was tried before, and waits for another try{why}")
        elif tried > 1:
            text = f"{tried} messages were tried before, and wait for another try"
            yield Reason("retry", text + why)


def _working(facts: Facts) -> Iterator[Reason]:
    if (turn := facts.turn) is not None and not turn.overdue:
        asked = f", and {turn.stopped_by} asked it to stop" if turn.stopped_by else ""
        for_s = f"{facts.turn_s:.0f} s"
        text = f"it works: turn {turn.turn_id} of {turn.conversation}, for {for_s}{asked}"
        yield Reason("working", text)


def _loop(facts: Facts) -> Iterator[Reason]:
    waker = facts.waker
    if waker is not None and waker.loops:
        yield Reason(
            "loop",
            f"{waker.who} and it wake each other: {waker.turns} of its {waker.total} turns in ten "
            f"minutes; `crewlet seat pause {facts.handle}` ends that and loses no mail",
        )


def _mail(facts: Facts) -> Iterator[Reason]:
    if facts.oldest is None:
        return
    total = facts.mail.waiting + facts.mail.in_flight if facts.mail else 1
    mail = "1 message; it" if total == 1 else f"{total} messages; the oldest"
    handed = "is in hand, and" if facts.oldest_in_hand else "was tried before, and"
    tried = f"{handed} " if facts.oldest.handed_out else ""
    yield Reason("mail", f"its mail: {mail} {tried}is {facts.oldest_s:.0f} s old")


def _asked(facts: Facts) -> Iterator[Reason]:
    for channel, quiet_s in facts.asked:
        yield Reason(
            "asked",
            f"it asked {channel.target} and has waited {quiet_s:.0f} s for the answer: "
            f"`crewlet why {channel.target}`, `crewlet channel show {channel.id}`",
        )


RULES: Final[tuple[Rule, ...]] = (
    _node,
    _revision,
    _owner,
    _attachment,
    _turn,
    _brakes,
    _slot,
    _working,
    _loop,
    _retries,
    _mail,
    _asked,
)


def _nothing(facts: Facts) -> Reason:
    return Reason("idle", f"nothing holds {facts.handle} up: it is idle, and no mail waits")


def removed(handle: str, record: SeatRecord) -> Reason:
    """What becomes of the mail of a seat that the company has not any more."""
    if record.state == "retired":
        mail = "1 message" if record.mail == 1 else f"{record.mail} messages"
        return Reason(
            "removed",
            f"the company has no agent {handle}: {mail} went with it "
            f"at {record.since:%Y-%m-%d %H:%M:%S} UTC",
        )
    since = record.absent_since or record.since
    if record.state != "present":
        until = f"until {since + GRACE:%Y-%m-%d %H:%M:%S} UTC, when its mailboxes are deleted"
    else:
        until = "for a day, until its mailboxes are deleted"
    gone = f"the company has no agent {handle} any more"
    way = "`crewlet apply` a file that has it"
    return Reason("removed", f"{gone}; its mail waits {until}: {way}")
