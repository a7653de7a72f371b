"""What is said of a seat in the moment between its mail and its turn."""

from __future__ import annotations

from actors.messages import BoxState
from actors.ports import MailboxState
from crewlet import topics
from crewlet.node.verbs.reasons import Facts, reasons


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
