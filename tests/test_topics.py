"""Subjects: what may stand in one, whose one is, and that no two mailboxes share one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.broker.patterns import matches

HANDLES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
GROUPS = st.text(min_size=1, max_size=80)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
SEGMENTS = st.from_regex(r"[a-z0-9_]{1,6}", fullmatch=True)
SUBJECTS = st.lists(SEGMENTS, min_size=1, max_size=5).map(".".join)

SEAT_TOPICS = (topics.inbox, topics.control, topics.reflect)
SEAT_BOXES = (topics.inbox_of, topics.control_of, topics.reflect_of)

NO_HANDLES = [
    "",
    "*",
    ">",
    ".",
    "..",
    "a.b",
    "a..b",
    "a b",
    "a\t",
    "a\r\n",
    "a\n",
    "a\0",
    "é",
    "xn--é",
    "ａ",
    "A",
    "-a",
    "_a",
    "a" * 64,
    "a" * 65536,
    "a\ud800",
    "٣",
]

thorough = settings(derandomize=True, max_examples=300, deadline=None)


@pytest.mark.certifies(24)
@pytest.mark.parametrize("text", NO_HANDLES, ids=lambda text: ascii(text)[:12])
def test_a_handle_that_is_no_token_has_no_topics(text: str) -> None:
    assert not topics.is_handle(text)
    for build in (*SEAT_TOPICS, *SEAT_BOXES):
        with pytest.raises(ValueError, match="is no handle"):
            build(text)


@pytest.mark.certifies(16, 17, 18, 24)
@thorough
@given(HANDLES)
def test_a_seats_topics_name_the_seat_and_nobody_elses(handle: str) -> None:
    built = [build(handle) for build in SEAT_TOPICS]
    assert len(set(built)) == 3
    for topic in built:
        assert topics.handle_of(topic) == handle
        assert topics.is_subject(topic)
        assert topics.namespace(topic) == "agent"
    assert matches(topics.INBOXES, topics.inbox(handle))


@pytest.mark.certifies(24)
@thorough
@given(ANY_TEXT)
def test_whatever_the_handle_the_topic_has_no_wildcard(text: str) -> None:
    try:
        topic = topics.inbox(text)
    except ValueError:
        return
    assert topics.handle_of(topic) == text
    assert not set(topic) & set("*> \t\r\n\0")


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "crewlet.agent.dev",
        "crewlet.agent..inbox",
        "crewlet.agent.*.inbox",
        "crewlet.agent.dev.outbox",
        "crewlet.agent.dev.inbox.x",
        "crewlet.events.dev.inbox",
        topics.INBOUND,
    ],
)
def test_no_seat_is_read_out_of_a_topic_that_is_not_its_own(topic: str) -> None:
    assert topics.handle_of(topic) is None


@pytest.mark.certifies(24)
@pytest.mark.parametrize(
    "subject",
    ["", ".", "a.", ".a", "a..b", "a b", "*", "a.>", "a\0b", "a\x85", "a\x9f", "a\ud800"]
    + ["a" * 256, "é" * 128],
    ids=lambda text: ascii(text)[:12],
)
def test_what_is_no_subject(subject: str) -> None:
    assert not topics.is_subject(subject)
    with pytest.raises(ValueError, match="is no subject"):
        topics.namespace(subject)


@pytest.mark.certifies(20, 24)
def test_the_record_of_a_type_is_a_topic_of_its_own() -> None:
    assert matches(topics.EVENTS, topics.event("turn.guard_breach"))
    for event_type in ("", "a b", "*", "a.>", "a..b"):
        with pytest.raises(ValueError, match="is no subject"):
            topics.event(event_type)


@pytest.mark.certifies(19)
def test_mail_from_outside_has_one_mailbox() -> None:
    assert topics.inbound() == topics.inbound() == Mailbox(topics.INBOUND, "notify-inbound")
    assert matches(topics.NOTIFICATIONS, topics.INBOUND)


# -- dead letters ---------------------------------------------------------------------


@pytest.mark.certifies(23)
@thorough
@given(SUBJECTS, GROUPS)
def test_dead_letters_lie_outside_the_engines_topics(topic: str, group: str) -> None:
    dead = topics.dead_letter(Mailbox(topic, group))
    assert topics.is_subject(dead)
    assert matches(topics.DEAD_LETTERS, dead)
    assert topics.namespace(dead) == "dlq"


@pytest.mark.certifies(23, 61)
@thorough
@given(SUBJECTS, SUBJECTS, SUBJECTS, SUBJECTS)
def test_two_mailboxes_never_share_their_dead_letters(t: str, g: str, u: str, h: str) -> None:
    assume((t, g) != (u, h))
    assert topics.dead_letter(Mailbox(t, g)) != topics.dead_letter(Mailbox(u, h))


@pytest.mark.certifies(23, 61)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Mailbox("a.b", "g"), Mailbox("a_b", "g")),
        (Mailbox("a.b", "c.d"), Mailbox("a.b.c", "d")),
        (Mailbox("a", "g h"), Mailbox("a", "g_h")),
        (Mailbox("a", "g*"), Mailbox("a", "g>")),
    ],
)
def test_a_rewritten_character_does_not_merge_two_mailboxes(one: Mailbox, other: Mailbox) -> None:
    assert topics.digest(one) != topics.digest(other)
    assert topics.dead_letter(one) != topics.dead_letter(other)


@pytest.mark.certifies(23, 43)
def test_the_longest_mailbox_can_be_given_up_too() -> None:
    """A message that has no dead-letter topic would be delivered for ever."""
    topic = "x." + "a" * 253
    assert topics.is_subject(topic)
    dead = {topics.dead_letter(Mailbox(topic, group)) for group in ("g", "h", "é" * 200)}
    assert len(dead) == 3
    assert all(topics.is_subject(subject) for subject in dead)
    cut_at_a_dot = Mailbox("a" * 237 + ".b", "g")
    assert topics.is_subject(topics.dead_letter(cut_at_a_dot))


# -- namespaces -----------------------------------------------------------------------


@pytest.mark.certifies(25, 26)
@pytest.mark.parametrize("subject", ["a-b.c", "A.b", "crewlet.a-b.c", "crewlet.É.x", "a$b"])
def test_a_namespace_that_would_alias_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="may hold small letters"):
        topics.namespace(subject)


@pytest.mark.certifies(25, 26)
@thorough
@given(SUBJECTS, SUBJECTS)
def test_a_subject_lies_in_its_own_namespace_and_in_no_other(subject: str, other: str) -> None:
    own, else_ = topics.namespace(subject), topics.namespace(other)
    assert any(matches(pattern, subject) for pattern in topics.patterns_of(own))
    if own != else_:
        assert not any(matches(pattern, subject) for pattern in topics.patterns_of(else_))
