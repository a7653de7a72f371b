"""Events of one conversation become one trigger, and nothing that somebody wrote is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inbound_bench import START

from crewlet.errors import CorruptEvent
from crewlet.events import Event, Trace
from crewlet.inbound.coalesce import NOTHING_NEW, SAID_AGAIN, SUPERSEDED, Delegation, coalesce
from crewlet.inbound.constituent import RECON, constituent_of, whatever_of


def told(id: str, body: str = "hello", *, minute: int = 0, why: str = "", **told: Any) -> Event:
    """A notification of somebody's comment."""
    notification = {"source": "github", "event_type": "issue_comment.created", "sender": "ann"}
    extras = {key: told.pop(key) for key in (RECON,) if key in told}
    envelope = {key: told.pop(key) for key in list(told) if key.startswith(("delegat", "parent"))}
    return Event.new(
        "external_notification",
        id=id,
        at=START + timedelta(minutes=minute),
        trace=Trace.root(),
        source="github",
        payload=extras,
        body={"notification": {**notification, "body": body, **told}, "why": why},
        **envelope,
    )


def digest(*events: Event) -> str:
    return coalesce(events).digest


def bullets(text: str) -> list[str]:
    """The earlier messages, each as one text."""
    listed = text.split("\n\n", 2)[2].rpartition("\n\n---\n\n")[0]
    return [f"- {each.rstrip()}" for each in f"\n{listed}".split("\n- ")[1:]]


@pytest.mark.certifies(98)
def test_a_single_event_is_passed_on_as_it_is() -> None:
    event = told("a", lead="stale")
    trigger = coalesce([event])
    assert (trigger.digest, trigger.constituents) == ("", (constituent_of(event),))


@pytest.mark.certifies(97)
def test_the_earlier_ones_are_a_list_and_the_last_stands_in_full_once() -> None:
    text = digest(
        told("a", "first", sender="ann"),
        told("b", "second", sender="ben", minute=1, why="addressed"),
        told("c", "third\n\nwith more", sender="cat", minute=2, subject="Broken"),
    )
    assert text == (
        "## 3 messages in one conversation: Broken\n"
        "\n"
        "These 3 messages waited together and are one piece of work. Read all of them before "
        "you do anything, and reply at most once. The earlier ones come first, in the order of "
        "time; the latest stands below the line, in full. "
        "Addressed to you is what is marked `to you`.\n"
        "\n"
        "- **ann** · 2026-03-01 10:00:00 UTC · issue_comment.created\n"
        "\n"
        "  first\n"
        "\n"
        "- **ben** · 2026-03-01 10:01:00 UTC · issue_comment.created · to you\n"
        "\n"
        "  second\n"
        "\n"
        "---\n"
        "\n"
        "**cat** · 2026-03-01 10:02:00 UTC · issue_comment.created\n"
        "\n"
        "third\n"
        "\n"
        "with more"
    )


@pytest.mark.parametrize(
    ("subjects", "heading"),
    [
        (("Broken", "", ""), "conversation: Broken\n"),
        (("Old", "New", ""), "conversation: New\n"),
        (("", "a\nb", ""), "conversation: a b\n"),
        (("", "", ""), "conversation: github:acme/rocket#7\n"),
    ],
)
def test_a_digest_is_called_as_the_latest_message_that_knows(
    subjects: tuple[str, ...], heading: str
) -> None:
    known = {"conversation_identity": "github:acme/rocket#7"}
    text = digest(*(told(str(n), subject=each, **known) for n, each in enumerate(subjects)))
    assert text.startswith(f"## 3 messages in one {heading}")


@pytest.mark.certifies(103)
@pytest.mark.parametrize(
    ("whys", "said"),
    [
        (("follower", "route"), "None of them is addressed to you."),
        (("addressed", "addressed"), "All of them are addressed to you."),
        (("addressed", "follower"), "Addressed to you is what is marked `to you`."),
    ],
)
def test_a_digest_says_whether_somebody_waits_for_this_seat(
    whys: tuple[str, ...], said: str
) -> None:
    text = digest(*(told(str(n), str(n), why=why) for n, why in enumerate(whys)))
    assert text.split("\n\n")[1].endswith(f"in full. {said}")
    heads = [line for line in text.split("\n") if " UTC · " in line]
    assert [head.endswith(" · to you") for head in heads] == [why == "addressed" for why in whys]


@pytest.mark.certifies(97)
def test_the_time_and_the_type_are_those_of_the_source() -> None:
    said = {"timestamp": "2026-02-28T23:59:59+02:00", "event_type": "finer"}
    (first,) = bullets(digest(told("a", metadata=said), told("b", "other")))
    assert "· 2026-02-28 21:59:59 UTC · finer\n" in first
    (first,) = bullets(digest(told("a", metadata={"timestamp": "soon"}), told("b")))
    assert "· 2026-03-01 10:00:00 UTC ·" in first


@pytest.mark.parametrize(
    ("sender", "name", "shown"),
    [
        ("ann", "", "**ann**"),
        ("U1", "Ann", "**Ann (U1)**"),
        ("ann", "@ann", "**ann**"),
        ("unknown", "", "**somebody**"),
        ("a\n- b", "", "**a - b**"),
    ],
)
def test_who_said_it_stands_in_one_line(sender: str, name: str, shown: str) -> None:
    event = told("a", sender=sender, metadata={"sender_name": name})
    (first,) = bullets(digest(event, told("b", sender="other")))
    assert first.startswith(f"- {shown} ·")


# -- what is left out -----------------------------------------------------------------


@pytest.mark.certifies(99)
def test_a_superseded_body_is_its_lead_and_the_last_one_keeps_its_text() -> None:
    stale = told("a", "a whole description", lead="issue updated (changed: description)")
    latest = told("b", "the description of now", lead="issue updated")
    text = digest(stale, latest)
    (first,) = bullets(text)
    assert first.endswith(f" {SUPERSEDED}: issue updated (changed: description)")
    assert "a whole description" not in text
    assert text.endswith("\n\nthe description of now")


@pytest.mark.certifies(100)
def test_what_the_same_sender_says_again_is_a_marker() -> None:
    first, second = bullets(digest(told("a", "+1"), told("b", " +1\n"), told("c", "+1")))
    assert first.endswith(SAID_AGAIN) and second.endswith(SAID_AGAIN)


@pytest.mark.certifies(100)
@pytest.mark.parametrize("sender", ["ben", "unknown"])
def test_two_people_who_say_the_same_are_two_facts(sender: str) -> None:
    """Of two whom the source does not name nobody knows that they are one."""
    (first,) = bullets(digest(told("a", "+1", sender=sender), told("b", "+1", sender="unknown")))
    assert first.endswith("\n\n  +1")


@pytest.mark.certifies(99, 100)
def test_nothing_is_left_out_for_a_text_that_is_not_shown_itself() -> None:
    """What comes again in a superseded body stands there in no reader's view."""
    first, _ = bullets(digest(told("a", "text"), told("b", "text", lead="moved"), told("c", "x")))
    assert first.endswith("\n\n  text")


@pytest.mark.certifies(105)
def test_of_what_is_new_null_is_all_of_it_and_an_empty_text_nothing() -> None:
    null, empty, some = bullets(
        digest(
            told("a", "one body", salient_body=None),
            told("b", "two body", salient_body=""),
            told("c", "three body", salient_body="three"),
            told("d", "last body", salient_body="last"),
        )
    )
    assert null.endswith("\n\n  one body")
    assert empty.endswith(NOTHING_NEW)
    assert some.endswith("\n\n  three")


@pytest.mark.certifies(101)
def test_no_text_is_cut_to_a_length() -> None:
    long = "word " * 400_000
    assert long.strip() in digest(told("a", long), told("b"))


TEXTS = st.text(
    st.one_of(st.sampled_from("\n\r -*#>`\t"), st.characters(codec="utf-8")), max_size=60
)


@pytest.mark.certifies(101)
@given(texts=st.lists(TEXTS, min_size=2, max_size=6))
def test_whatever_is_written_no_line_of_it_leaves_its_bullet(texts: list[str]) -> None:
    events = [told(str(n), text, sender=f"s{n}") for n, text in enumerate(texts)]
    listed = digest(*events).split("\n\n", 2)[2]
    listed = listed[: listed.rindex("\n\n---\n\n", 0, len(listed) - len(texts[-1]))]
    heads = [line for line in listed.replace("\r", "\n").split("\n") if line[:1] not in ("", " ")]
    assert len(heads) == len(texts) - 1
    assert all(head.startswith(f"- **s{n}** ·") for n, head in enumerate(heads))
    for text in texts[:-1]:
        kept = [line.rstrip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
        shown = listed.replace("\r", "\n").split("\n")
        assert not kept or any(line.rstrip() == f"  {kept[-1]}" for line in shown)
    assert digest(*events).endswith(texts[-1])


# -- what the whole carries -----------------------------------------------------------


@pytest.mark.certifies(103)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_flag_of_one_is_a_flag_of_all(at: int) -> None:
    plain = [told(id, why="follower") for id in "abc"]
    assert (coalesce(plain).addressed, coalesce(plain).recon) == (False, False)
    plain[at] = told("x", why="addressed", recon=True)
    merged = coalesce(plain)
    assert (merged.addressed, merged.recon) == (True, True)
    assert [one.addressed for one in merged.constituents] == [n == at for n in range(3)]


@pytest.mark.certifies(103)
def test_mail_that_was_sent_to_a_seat_alone_is_for_it() -> None:
    task = Event.new("task_assigned", at=START, trace=Trace.root(), body={"text": "go"})
    assert coalesce([task]).addressed


@pytest.mark.certifies(104)
def test_the_depth_is_that_of_the_deepest_and_the_trace_that_of_the_first() -> None:
    deep = {"delegation_depth": 3, "delegation_chain": ("a", "b"), "parent_turn_id": "t-9"}
    events = [told("a"), told("b", **deep), told("c", delegation_depth=1, parent_turn_id="t-1")]
    merged = coalesce(events)
    assert merged.delegation == Delegation(depth=3, chain=("a", "b"), parent_turn_id="t-9")
    assert merged.trace == events[0].trace


@pytest.mark.certifies(102)
def test_every_constituent_is_there_with_all_that_it_said() -> None:
    said = {"number": 7}
    merged = coalesce([told("a", "one", occurrence="m:1", metadata=said), told("b", recon=True)])
    first, second = merged.constituents
    assert (first.id, first.sender, first.salient, first.source) == ("a", "ann", "one", "github")
    assert (first.message, first.metadata["number"], first.timestamp) == ("m:1", 7, START)
    assert (first.recon, second.recon) == (False, True)


# -- what cannot be merged ------------------------------------------------------------

BROKEN = [
    {"body": 7},
    {"sender": ["ann"]},
    {"metadata": "none"},
    {"salient_body": {}},
    {"lead": 1.5},
    {"occurrence": None},
]


@pytest.mark.certifies(106)
@pytest.mark.parametrize("fields", BROKEN, ids=str)
def test_a_malformed_constituent_is_merged_with_nothing_and_shown_alone(
    fields: dict[str, Any],
) -> None:
    broken = told("a", **fields)
    with pytest.raises(CorruptEvent, match="a"):
        coalesce([told("b"), broken])
    assert coalesce([broken]).constituents == (whatever_of(broken),)


@pytest.mark.certifies(106)
@pytest.mark.parametrize("body", [{}, {"notification": []}, {"notification": "text"}])
def test_a_notification_of_nothing_is_malformed(body: dict[str, Any]) -> None:
    empty = Event.new("external_notification", at=START, trace=Trace.root(), body=body)
    with pytest.raises(CorruptEvent):
        coalesce([told("b"), empty])
    assert coalesce([empty]).constituents[0].body == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(("sender", "body", "text", "salient_body", "lead", "metadata", "source"))


@given(fields=st.dictionaries(FIELDS, JSON), kind=st.sampled_from(("x", "external_notification")))
def test_whatever_stands_in_an_event_it_is_shown_and_never_raises(
    fields: dict[str, Any], kind: str
) -> None:
    body = {"notification": fields} if kind != "x" else fields
    event = Event.new(kind, at=START, trace=Trace.root(), body=body)
    (alone,) = coalesce([event]).constituents
    try:
        strict = constituent_of(event)
    except CorruptEvent:
        return
    assert strict == alone
