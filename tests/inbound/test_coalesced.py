"""Merged or taken apart: what becomes of a partition on its way to a turn."""

from __future__ import annotations

from typing import Any

import pytest
from inbound_bench import Bench, event, on_a_bench
from msgspec import Raw, structs
from test_dispatch import Desk, at_a_desk, returns

from actors.delivery import Ack, Nak, Partly
from actors.ports import Unavailable
from crewlet import topics
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.triggers import NotificationsCoalesced
from crewlet.inbound.letters import conversation_identity, partition_key
from crewlet.turn import Turn


def broken(id: str, **options: Any) -> Event:
    """An event whose sender is no text: it can be shown, and merged with nothing."""
    one = event(id, **options)
    return structs.replace(one, body={**one.body, "sender": Raw(b"{}")})


@pytest.mark.certifies(97, 102)
def test_a_handler_gets_the_digest_and_every_message_by_itself() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A", text="one"), event("B", text="two", minute=1))
        (turn,) = desk.worked
        assert turn.text == turn.digest
        assert "\n\n  one\n" in turn.digest and turn.digest.endswith("\n\ntwo")
        assert [(one.id, one.body) for one in turn.events] == [("A", "one"), ("B", "two")]

    at_a_desk(play)


@pytest.mark.certifies(98)
def test_of_a_single_event_the_handler_gets_the_text_as_it_is() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A", text="one"))
        (turn,) = desk.worked
        assert (turn.digest, turn.text) == ("", "one")
        assert await desk.bench.recorded(types.NOTIFICATIONS_COALESCED) == []

    at_a_desk(play)


@pytest.mark.certifies(107, 159, 202)
def test_a_merge_is_published_and_names_its_partition() -> None:
    async def play(desk: Desk) -> None:
        first = event("A", key="slack:D1:17.1")
        await desk.run(first, event("B", key="slack:D1:17.1"))
        (record,) = await desk.bench.recorded(types.NOTIFICATIONS_COALESCED)
        assert record.read(NotificationsCoalesced) == NotificationsCoalesced(
            agent_id="a-1",
            agent_role="dev",
            partition_key="slack:D1:17.1",
            triggers=("A", "B"),
            count=2,
        )
        assert "conversation_key" not in record.body
        assert record.trace.trace_id == first.trace.trace_id

    at_a_desk(play)


@pytest.mark.certifies(89, 90, 107)
def test_what_a_turn_has_worked_is_in_no_digest() -> None:
    async def play(desk: Desk) -> None:
        await desk.run(event("A"))
        await desk.run(event("A"), event("B"))
        assert [turn.digest for turn in desk.worked] == ["", ""]
        assert await desk.bench.recorded(types.NOTIFICATIONS_COALESCED) == []

    at_a_desk(play)


@pytest.mark.certifies(104, 202)
def test_the_turn_is_of_the_first_ones_trace_and_of_the_deepest_ones_depth() -> None:
    async def play(desk: Desk) -> None:
        first = event("A")
        deep = structs.replace(
            event("B"), delegation_depth=2, delegation_chain=("x", "y"), parent_turn_id="t-1"
        )
        await desk.run(first, deep, event("C"))
        (turn,) = desk.worked
        assert (turn.delegation_depth, turn.delegation_chain) == (2, ("x", "y"))
        assert turn.parent_turn_id == "t-1"
        assert turn.traceparent.split("-")[1] == first.trace.trace_id

    at_a_desk(play)


# -- taken apart ----------------------------------------------------------------------


@pytest.mark.certifies(106)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_cannot_be_merged_is_worked_one_by_one_the_first_of_it_now(at: int) -> None:
    events = [broken(id) if n == at else event(id) for n, id in enumerate("ABC")]

    async def play(desk: Desk) -> None:
        assert await desk.run(*events) == Partly(("B", "C"), Ack("done"))
        assert desk.ids == [["A"]]
        waiting = await desk.bench.mail(topics.inbox_of("dev"))
        assert [one.id for one in waiting] == ["B", "C"]
        assert [partition_key(one) for one in waiting] == ["event:B", "event:C"]
        assert {conversation_identity(one) for one in waiting} == {"chat:C1"}
        originals = [structs.replace(one, node="n1") for one in events[1:]]
        assert [structs.replace(one, payload={}) for one in waiting] == [
            structs.replace(one, payload={}) for one in originals
        ]
        assert await desk.bench.recorded(types.NOTIFICATIONS_COALESCED) == []

    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        await play(Desk(bench))

    on_a_bench(main)


@pytest.mark.certifies(106)
def test_the_others_are_put_back_before_the_first_is_worked() -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        there: list[int] = []

        async def look(_: Turn) -> Ack:
            (state,) = await bench.client.list(topics.inbox("dev"))
            there.append(state.waiting)
            return Ack()

        await Desk(bench, look).run(event("A"), broken("B"))
        assert there == [1]

    on_a_bench(main)


@pytest.mark.certifies(106)
def test_if_they_cannot_be_put_back_nothing_is_worked() -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        desk, publish, stored = Desk(bench), bench.client.publish, []

        async def once(topic: str, body: bytes, *, message_id: str, within_s: float) -> Any:
            if topic == topics.inbox("dev") and stored:
                raise Unavailable("full")
            receipt = await publish(topic, body, message_id=message_id)
            stored.append(message_id)
            return receipt

        bench.client.publish = once  # type: ignore[method-assign]
        outcome = await desk.run(event("A"), broken("B"), event("C"))
        assert isinstance(outcome, Nak) and "taken apart" in outcome.reason
        assert desk.worked == []
        bench.client.publish = publish  # type: ignore[method-assign]
        assert await desk.run(event("A"), broken("B"), event("C")) == Partly(
            ("B", "C"), Ack("done")
        )
        waiting = await bench.mail(topics.inbox_of("dev"))
        assert [one.id for one in waiting] == ["B", "C"], "what was put back is there once"

    on_a_bench(main)


@pytest.mark.certifies(106)
def test_a_failure_of_the_first_brings_back_the_first_only() -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        desk = Desk(bench, returns(Nak("no")))
        assert await desk.run(event("A"), broken("B")) == Partly(("B",), Nak("no"))

    on_a_bench(main)


@pytest.mark.certifies(89, 106)
def test_a_copy_that_was_worked_is_known_when_its_original_comes_again() -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev")
        desk = Desk(bench)
        await desk.run(event("A"), broken("B"))
        (copy,) = await bench.mail(topics.inbox_of("dev"))
        await desk.run(copy)
        assert await desk.run(event("A"), broken("B")) == Ack()
        assert desk.ids == [["A"], ["B"]]

    on_a_bench(main)
