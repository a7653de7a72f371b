"""Whatever comes, in whatever order, and however its turns end: every event that was accepted is
worked exactly once, or stands somewhere where a person can see it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct, structs

from actors.delivery import Defer, Nak
from crewlet import topics
from crewlet.events import Event, Trace, decode
from crewlet.events import catalogue as types
from crewlet.turn import Abandon, Answered, Turn
from tests.node.conversing import Talk, talking

End: TypeAlias = Literal["ack", "nak", "raise", "defer", "abandon", "shown"]

CONVERSATIONS = ("slack:C9:1718.001", "slack:D1", "")
QUIET_S = 3600.0


class Said(Struct, frozen=True):
    """One event: how long after the one before it, in which conversation, whether it can be
    merged, how long a turn of it takes, and how its turns end; afterwards they are acked."""

    pause_s: float
    conversation: int
    broken: bool
    takes_s: float
    ends: tuple[End, ...]
    twice: bool


ENDS = st.sampled_from(("ack", "nak", "raise", "defer", "abandon", "shown"))
STREAM = st.lists(
    st.builds(
        Said,
        st.sampled_from((0.0, 0.5, 3.0)),
        st.sampled_from((0, 0, 1, 2)),
        st.sampled_from((False, False, False, True)),
        st.sampled_from((0.0, 2.0)),
        st.lists(ENDS, max_size=3).map(tuple) | st.just(("nak",) * 30),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def event(n: int, said: Said, at: Any) -> Event:
    """A chat message for dev; a broken one claims a sender that is no text."""
    key = CONVERSATIONS[said.conversation]
    notification = {"source": "slack", "event_type": "message", "body": f"text {n}"}
    sender: object = {} if said.broken else "ann"
    made = Event.new(
        types.EXTERNAL_NOTIFICATION,
        id=f"e{n}",
        at=at,
        trace=Trace.root(),
        source="slack",
        payload={"partition_key": key, "conversation_identity": key} if key else {},
        body={"notification": {**notification, "sender": sender, "occurrence": f"m{n}"}},
    )
    assert isinstance(made.body["notification"], Raw)
    return made


class Plot:
    """How the turns end, by the first event that still has an end planned."""

    def __init__(self, talk: Talk, stream: list[Said]) -> None:
        self._talk = talk
        self._ends = {f"e{n}": list(said.ends) for n, said in enumerate(stream)}
        self._takes = {f"e{n}": said.takes_s for n, said in enumerate(stream)}

    async def work(self, turn: Turn) -> Any:
        ids = [one.id for one in turn.events]
        await asyncio.sleep(max(self._takes[id] for id in ids))
        end = next((self._ends[id].pop(0) for id in ids if self._ends[id]), "ack")
        match end:
            case "nak":
                return Nak("no")
            case "raise":
                raise RuntimeError("no")
            case "defer":
                return Defer("not now", retry_after_s=1.0)
            case "abandon":
                return Abandon("given up")
            case "shown":
                return Answered("all of it", tuple(f"m{n}" for n in range(0, 12, 2)))
        return "done"


async def say(talk: Talk, stream: list[Said]) -> list[str]:
    """The ids of what was accepted; some of it a second time, as a requeueing hand would."""
    accepted = []
    for n, said in enumerate(stream):
        await asyncio.sleep(said.pause_s)
        one = event(n, said, talk.node.clock.now())
        await talk.node.queue.publish(topics.inbox("dev"), one)
        if said.twice:
            await talk.node.queue.publish(topics.inbox("dev"), one, message_id=f"again-{n}")
        accepted.append(one.id)
    return accepted


async def fates(talk: Talk, accepted: list[str]) -> dict[str, list[str]]:
    """What can be seen of each event: how often it was worked, and where it stands otherwise."""
    found: dict[str, list[str]] = {id: [] for id in accepted}
    for id, outcomes in (await talk.outcomes()).items():
        found[id] += [outcome for outcome in outcomes if outcome in ("ack", "abandon")]
    for skip in await talk.recorded(types.TURN_TRIGGER_SKIPPED):
        found[skip.value("trigger_id", str, "")].append("skipped")
    for letter in await talk.node.broker.dead_letters(100):
        found[decode(letter.body).id].append("dead")
    return found


@pytest.mark.certifies(79, 80, 88, 89, 92, 94, 106)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(stream=STREAM, moves=st.booleans())
def test_every_event_is_worked_once_or_stands_where_it_can_be_seen(
    stream: list[Said], moves: bool
) -> None:
    async def play(talk: Talk) -> None:
        talk.work = Plot(talk, stream).work
        accepted = await say(talk, stream)
        if moves:
            await talk.moved("n2")
        await asyncio.sleep(QUIET_S)
        waiting = await talk.waiting()
        for id, seen in (await fates(talk, accepted)).items():
            assert seen.count("ack") <= 1, f"{id} was worked twice: {seen}"
            assert seen or waiting, f"{id} is gone without a trace"
        assert waiting == 0, "after an hour nothing holds anything back"

    talking(play)


def test_the_streams_reach_what_they_are_for() -> None:
    """One fixed stream in which a message is merged, taken apart, shown, dead and given up."""
    fine = Said(0.0, 0, False, 2.0, (), False)
    stream = [
        structs.replace(fine, conversation=2, ends=("nak",) * 30),
        fine,
        fine,
        fine,
        structs.replace(fine, pause_s=10.0),
        structs.replace(fine, broken=True),
        fine,
        structs.replace(fine, conversation=1, ends=("abandon",)),
    ]

    async def play(talk: Talk) -> None:
        talk.work = Plot(talk, stream).work
        accepted = await say(talk, stream)
        await asyncio.sleep(QUIET_S)
        found = await fates(talk, accepted)
        assert found["e0"] == ["dead"]
        assert "abandon" in found["e7"] and "skipped" in found["e7"]
        assert await talk.recorded(types.NOTIFICATIONS_COALESCED)
        assert any("event:" in turn.conversation.partition_key for turn in talk.turns)

    talking(play)
