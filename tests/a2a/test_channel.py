"""The machine of a channel: what holds whatever happens, in whatever order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.a2a.channel import (
    TRANSITIONS,
    Announced,
    Channel,
    Illegal,
    Input,
    Owed,
    Reply,
    Told,
    Withdrawn,
    channel_id,
    is_channel_id,
    over,
    step,
)
from crewlet.a2a.upkeep import GONE, IDLE, KEPT, Due, Facts, GiveUp, due
from crewlet.errors import ReplyRefused
from crewlet.events import Trace
from crewlet.inbound.ids import work_key

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRACE = Trace(trace_id="1" * 32, span_id="2" * 16)

OPEN = Channel(
    id="a2a-0123456789ab",
    asker="dev",
    target="qa",
    brief="fit?",
    opened_at=NOON,
    trace=TRACE,
    depth=1,
    chain=("dev",),
    turn_id="turn-1",
    work_key="k",
)


def answer(text: str = "yes", *, by: str = "qa", epoch: int = 1, minute: int = 1) -> Owed:
    at = NOON + timedelta(minutes=minute)
    return Owed(Reply(text=text, at=at, trace=TRACE, by=by, turn_id="turn-2", epoch=epoch))


def nothing_comes(why: str = "nobody", minute: int = 1) -> Owed:
    return Owed(Reply(text=why, at=NOON + timedelta(minutes=minute), trace=TRACE))


times = st.integers(-60, 600).map(lambda minute: NOON + timedelta(minutes=minute))
inputs: st.SearchStrategy[Input] = st.one_of(
    st.builds(
        answer,
        st.sampled_from(["yes", "no", ""]),
        by=st.sampled_from(["qa", "ops", "dev"]),
        epoch=st.integers(0, 3),
        minute=st.integers(0, 60),
    ),
    st.builds(nothing_comes, st.sampled_from(["dead", "idle"]), st.integers(0, 60)),
    st.builds(Told, times),
    st.builds(Withdrawn, times, st.just("no mailbox")),
    st.just(Announced()),
)

ORDER = {"open": 0, "answered": 1, "closed": 2}


@pytest.mark.certifies(216, 220)
@given(st.lists(inputs, max_size=12))
def test_whatever_happens_a_channel_goes_forward_and_ends_once(happens: list[Input]) -> None:
    channel, ends, words = OPEN, 0, 0
    for given_ in happens:
        before = channel
        try:
            channel = step(before, given_)
        except (ReplyRefused, Illegal):
            continue
        assert ORDER[channel.state] >= ORDER[before.state]
        ends += channel.state == "closed" != before.state
        if channel.reply is not None and channel.reply.by:
            assert channel.reply.by == "qa", "nobody else was asked"
            if before.reply is not None:
                assert before.reply.by, "the system's word stands"
                assert channel.reply.epoch >= before.reply.epoch
        if before.state == "closed":
            words += channel.reply != before.reply or channel.closed_at != before.closed_at
        assert (channel.closed_at is not None) == (channel.state == "closed")
        assert channel.announced <= (channel.state == "closed")
        assert channel.duration_s >= 0.0 and channel.count in (1, 2)
    assert ends <= 1 and words == 0, "a closed channel changes no more"
    assert channel.participants == ("dev", "qa") and channel.opened_at == NOON


def test_what_is_not_in_the_table_cannot_happen() -> None:
    states = {
        "open": OPEN,
        "answered": step(OPEN, answer()),
        "closed": step(step(OPEN, answer()), Told(NOON)),
    }
    every: dict[type[Input], Input] = {
        Owed: answer(epoch=0),
        Told: Told(NOON),
        Withdrawn: Withdrawn(NOON, "?"),
        Announced: Announced(),
    }
    for (state, channel), (kind, one) in product(states.items(), every.items()):
        if (state, kind) not in TRANSITIONS:
            with pytest.raises(Illegal, match=state):
                step(channel, one)


@pytest.mark.certifies(215)
def test_the_answer_of_a_turn_that_lost_its_seat_never_stands_over_its_successors() -> None:
    later = step(step(OPEN, answer("old", epoch=3)), answer("new", epoch=4))
    assert later.reply is not None and later.reply.text == "new"
    with pytest.raises(ReplyRefused, match="lost its seat"):
        step(later, answer("old", epoch=3))


@pytest.mark.certifies(216)
def test_an_answer_is_refused_with_the_reason() -> None:
    with pytest.raises(ReplyRefused, match="ops was not asked"):
        step(OPEN, answer(by="ops"))
    given_up = step(OPEN, nothing_comes("qa is gone"))
    closed = step(given_up, Told(NOON))
    for channel in (given_up, closed):
        with pytest.raises(ReplyRefused, match="qa is gone"):
            step(channel, answer())
        assert "qa is gone" in over(channel)
    with pytest.raises(ReplyRefused, match="it has had its answer"):
        step(step(step(OPEN, answer()), Told(NOON)), answer("again", epoch=9))


def test_what_was_said_is_kept_until_it_is_handed_on() -> None:
    closed = step(step(OPEN, answer("yes")), Told(NOON - timedelta(minutes=5)))
    assert closed.reply is not None
    assert (closed.brief, closed.reply.text, closed.closed_by) == ("", "", "qa")
    assert closed.closed_at == NOON, "another node's clock is behind: it ends no earlier"


def test_ids_follow_from_who_asks_what_for_which_work() -> None:
    key = work_key(["b", "a", "a"])
    assert key == work_key(["a", "b"]) != work_key(["a"]) and len(key) == 32
    assert work_key([]) == ""
    ids = {
        channel_id("dev", key, "qa", 0),
        channel_id("dev", key, "qa", 1),
        channel_id("dev", key, "ops", 0),
        channel_id("dev", work_key(["a"]), "qa", 0),
        channel_id("qa", key, "dev", 0),
    }
    assert len(ids) == 5 and all(is_channel_id(id) for id in ids)
    assert channel_id("dev", key, "qa", 0) in ids
    assert not is_channel_id("a2a-0123456789AB") and not is_channel_id("a2a-0123456789ab\n")


# -- what is due ----------------------------------------------------------------------

ANSWERED = step(OPEN, answer(minute=0))
GIVEN_UP = step(OPEN, nothing_comes(minute=0))
CLOSED = step(ANSWERED, Told(NOON))
SOON = timedelta(seconds=1)


@pytest.mark.certifies(219)
@pytest.mark.parametrize(
    ("channel", "after", "facts", "wanted"),
    [
        (OPEN, IDLE - SOON, {}, "nothing"),
        (OPEN, IDLE, {}, "has not answered for an hour"),
        (OPEN, SOON, {"dead": "exit 1"}, "a dead letter: exit 1"),
        (OPEN, SOON, {"completed": True}, "nothing"),
        (OPEN, GONE - SOON, {"gone": True}, "nothing"),
        (OPEN, GONE, {"gone": True}, "no seat of this company"),
        (ANSWERED, SOON, {}, "nothing"),
        (ANSWERED, SOON, {"completed": True}, "deliver"),
        (ANSWERED, IDLE * 3, {"completed": True, "dead": "acks were lost"}, "deliver"),
        (ANSWERED, IDLE, {}, "has not answered for an hour"),
        (ANSWERED, SOON, {"dead": "exit 1"}, "a dead letter: exit 1"),
        (GIVEN_UP, SOON, {}, "deliver"),
        (CLOSED, SOON, {}, "announce"),
        (step(CLOSED, Announced()), KEPT - SOON, {}, "nothing"),
        (step(CLOSED, Announced()), KEPT, {}, "forget"),
        (CLOSED, KEPT, {}, "forget"),
    ],
)
def test_what_is_due(
    channel: Channel, after: timedelta, facts: dict[str, object], wanted: str
) -> None:
    found: Due = due(channel, Facts(NOON + after, **facts))  # type: ignore[arg-type]
    if isinstance(found, GiveUp):
        assert wanted in found.why and channel.id in found.why
    else:
        assert found == wanted
