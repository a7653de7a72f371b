"""What is said of a seat between its mail and its turn, and the way out of all else."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import crewlet.node.verbs.reasons as module
from actors.mail import UNCONFIRMED
from actors.messages import BoxState
from actors.ports import MailboxState
from crewlet import topics
from crewlet.a2a.channel import Channel
from crewlet.broker.port import Waiting
from crewlet.events import Trace
from crewlet.inbound.outage import Outage
from crewlet.inbound.outages import PROVIDER
from crewlet.inbound.running import RunningTurn
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.inbound.wakers import Waker
from crewlet.node.pauses import PAUSED, Pause
from crewlet.node.verbs.reasons import Facts, reasons
from crewlet.runs.live import RUN

SOURCE = Path(module.__file__)


def facts(*, full: bool) -> Facts:
    """Its mail is in hand, and no turn of it runs yet."""
    box = BoxState(
        box="inbox",
        state="running",
        attached=True,
        quiesced=False,
        deferred=False,
        paused=False,
        holds=(),
        held=1,
        running="a conversation",
    )
    mail = MailboxState(topics.inbox_of("dev"), waiting=0, in_flight=1)
    return Facts(handle="dev", node="n1", owner="n1", box=box, mail=mail, full=full)


def test_mail_in_hand_has_not_failed_and_waits_for_no_slot_that_is_free() -> None:
    assert [reason.code for reason in reasons(facts(full=False))] == ["starting"]


def test_a_turn_waits_for_a_slot_where_all_are_taken() -> None:
    assert [reason.code for reason in reasons(facts(full=True))] == ["slot"]


def box(**changed: Any) -> BoxState:
    plain = facts(full=False).box
    assert plain is not None
    return msgspec.structs.replace(plain, **{"held": 0, "running": None, **changed})


AT = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
TURN = RunningTurn("t1", "dev", "a conversation", AT)
STUCK = msgspec.structs.replace(TURN, overdue="timeout after 60 s")
OUTAGE = Outage(since=AT, reason="503", at=AT, wait_s=5.0)
QUESTION = Channel(
    id="a2a-1",
    asker="dev",
    target="qa",
    brief="?",
    opened_at=AT,
    trace=Trace.root(),
    depth=1,
    chain=(),
    turn_id="t1",
    work_key="w1",
)
HELD = box(holds=(PAUSED, UNCONFIRMED, PROVIDER, RUN, NO_HANDLER, "new key"))


def seen(**changed: Any) -> Facts:
    return Facts(**{"handle": "dev", "node": "n1", "owner": "n1", "box": box(), **changed})


def states(*, in_flight: int) -> MailboxState:
    return MailboxState(topics.inbox_of("dev"), waiting=0, in_flight=in_flight)


SITUATIONS = (
    facts(full=False),
    facts(full=True),
    seen(mail=states(in_flight=0)),
    seen(stopping=True, connected=False, behind="revision 2: no"),
    seen(owner=None, box=None),
    seen(owner=None, box=None, barred=["n1: it has no label gpu"]),
    seen(owner="n2", box=None),
    seen(box=None),
    seen(box=box(attached=False, quiesced=True, deferred=True)),
    seen(box=box(paused=True)),
    seen(box=box(paused=True), draining=True),
    seen(box=HELD, pause=Pause(paused=True, by="ann", at=AT), outage=OUTAGE),
    seen(turn=STUCK),
    seen(turn=TURN, waker=Waker("qa", 99, 100)),
    seen(
        mail=states(in_flight=1), oldest=Waiting(1, AT, "m1", b"", True), asked=((QUESTION, 9.0),)
    ),
)
"""Between them they have every reason."""

WELL = {"working", "idle", "starting", "moving", "mail", "retry"}
"""Nothing is to be done about these."""


def test_every_reason_that_something_is_wrong_says_the_way_out() -> None:
    """A command, or that it ends by itself. `removed` is told of a seat that is no more."""
    told = {reason.code: reason.text for each in SITUATIONS for reason in reasons(each)}
    assert set(told) | {"removed"} == set(re.findall(r'Reason\(\s*"(\w+)"', SOURCE.read_text()))
    for code in set(told) - WELL:
        assert "`crewlet " in told[code] or "by itself" in told[code], told[code]
