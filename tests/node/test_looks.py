"""What is known of a seat is told while the broker does not answer: then more than ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from actors.admin.client import SILENCE_S
from actors.ports import Unavailable
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.errors import NodeRefused, StoreUnavailable
from crewlet.node.verbs.desk import explained
from crewlet.turn import Turn
from tests.node.operated import Operated, Row, on_nodes, settled


def away(node: Operated) -> None:
    """The node's own server is gone."""
    client = node.node.broker
    assert isinstance(client, MemoryClient)
    client._broker.down = True


def leaderless(node: Operated) -> None:
    """The server is there, and most of its cluster is not: what is stored cannot be asked for."""
    client: Any = node.node.broker

    async def none(*_: object) -> None:
        raise Unavailable("the broker does not answer; try again")

    client.list = client.peek = none
    client._broker.shelves.down = True


def seat_of(rows: list[Row], handle: str) -> Row:
    return next(row for row in rows if row["handle"] == handle)


@pytest.mark.parametrize("fault", [away, leaderless])
def test_a_seat_is_looked_at_without_its_mail(fault: Callable[[Operated], None]) -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.hold", handle="dev")
        fault(node)
        for row in (
            seat_of(await node.ask("seats"), "dev"),
            await node.one("seat.show", handle="dev"),
        ):
            assert (row["state"], row["owner"]) == ("resting (held: operator)", "n1")
            assert (row["waiting"], row["in_flight"]) == (None, None)
        said = await node.ask("why", handle="dev")
        assert [reason["code"] for reason in said] == ["broker", "held"]
        look = await node.one("top")
        assert (look["waiting"], look["in_flight"], look["here"]) == (None, None, 2)

    on_nodes(test)


def test_a_seat_of_another_node_is_looked_at_while_nobody_can_be_asked() -> None:
    async def test(*nodes: Operated) -> None:
        owner = nodes[0].node.fleet.owner_of("dev")
        other = next(node for node in nodes if node.node.node_id != owner)
        away(other)
        assert (await other.ask("why", handle="dev"))[0]["code"] == "broker"
        assert (await other.one("seat.show", handle="dev"))["owner"] == owner
        failure = await other.refused("seat.hold", handle="dev")
        assert failure.message.startswith(f"dev is worked on {owner}: {owner} was not heard")

    on_nodes(test, "n1", "n2")


def test_the_turns_of_a_seat_are_told_by_the_node_that_works_it() -> None:
    """Another one knows nothing of them, and says no number."""

    async def test(*nodes: Operated) -> None:
        owner = nodes[0].node.fleet.owner_of("dev")
        mine, other = sorted(nodes, key=lambda node: node.node.node_id != owner)
        await mine.node.send("dev", "hello")
        await until(lambda: mine.node.turns.tally("dev").turns == 1)
        assert seat_of(await mine.ask("seats"), "dev")["turns"] == 1
        assert seat_of(await other.ask("seats"), "dev")["turns"] is None
        assert (await other.one("seat.show", handle="dev"))["turns"] == 1
        await mine.one("seat.move", handle="dev", node=other.node.node_id)
        await until(lambda: mine.node.fleet.owner_of("dev") == other.node.node_id)
        row = seat_of(await mine.ask("seats"), "dev")
        assert (row["turns"], row["last_turn"]) == (None, None)

    on_nodes(test, "n1", "n2")


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not what():
            await asyncio.sleep(0.1)


def test_mail_that_waits_for_its_next_try_has_a_reason() -> None:
    async def fails(_: Turn) -> None:
        raise ValueError("no such branch")

    async def test(node: Operated) -> None:
        await node.node.send("dev", "hello")
        await until(lambda: node.node.turns.tally("dev").turns == 5)  # the next is in some seconds
        await asyncio.sleep(1)
        said = {reason["code"]: reason["text"] for reason in await node.ask("why", handle="dev")}
        assert said["retry"].endswith("its last turn failed: ValueError: no such branch")
        ended, *_ = await node.recorded("agent_turn_completed")
        assert ended.summary == "dev: turn nak, ValueError: no such branch"

    on_nodes(test, turn=fails)


def test_a_seat_that_was_away_is_not_said_to_have_failed_before() -> None:
    """What it did elsewhere meanwhile is not known here."""

    wrong = ["no such branch"]

    async def turn(_: Turn) -> str:
        if wrong:
            raise ValueError(wrong[0])
        return "done"

    async def test(*nodes: Operated) -> None:
        owner = nodes[0].node.fleet.owner_of("dev")
        mine, other = sorted(nodes, key=lambda node: node.node.node_id != owner)
        tally = mine.node.turns.tally
        await mine.node.send("dev", "hello")
        await until(lambda: tally("dev").failure == "ValueError: no such branch")
        await mine.one("seat.move", handle="dev", node=other.node.node_id)
        await until(lambda: mine.node.fleet.owner_of("dev") == other.node.node_id)
        wrong.clear()
        await until(lambda: other.node.turns.tally("dev").turns > 0)
        await settled(list(nodes))
        await other.one("seat.move", handle="dev", node=mine.node.node_id)
        await until(lambda: mine.node.fleet.owner_of("dev") == mine.node.node_id)
        await settled(list(nodes))
        assert tally("dev").failure == "" and tally("dev").turns > 0

    on_nodes(test, "n1", "n2", turn=turn)


def test_a_task_that_may_be_stored_is_said_to_be_that_before_a_caller_gives_up() -> None:
    async def test(node: Operated) -> None:
        away(node)
        began = asyncio.get_running_loop().time()
        failure = await node.refused("send", handle="dev", text="hello")
        assert (failure.code, failure.exit) == ("unknown", 1)
        assert "`crewlet inbox peek dev` before you send it again" in failure.message
        assert asyncio.get_running_loop().time() - began < SILENCE_S / 2

    on_nodes(test)


def test_another_node_says_that_before_who_asked_it_gives_up() -> None:
    async def test(*nodes: Operated) -> None:
        asked, other = nodes
        slow: Any = other.node.queue._broker

        async def unanswered(*_: object, within_s: float, **__: object) -> None:
            await asyncio.sleep(within_s)
            raise Unavailable("the broker does not answer; try again")

        slow.publish = unanswered
        args = {"handle": "dev", "text": "hello"}
        failure = await asked.refused("on", node="n2", verb="send", args=args)
        assert failure.code == "unknown"
        assert "`crewlet inbox peek dev` before you send it again" in failure.message

    on_nodes(test, "n1", "n2")


@pytest.mark.parametrize("verb", ["inbox.peek", "run.ls"])
def test_what_only_the_broker_knows_is_refused_with_the_way_out(verb: str) -> None:
    async def test(node: Operated) -> None:
        away(node)
        args = {"handle": "dev"} if verb == "inbox.peek" else {}
        with pytest.raises((Unavailable, StoreUnavailable)) as raised:
            await node.ask(verb, **args)
        failure = explained(raised.value)
        assert failure is not None and failure.exit == 1
        assert "`crewlet node ls` shows who is there" in failure.message

    on_nodes(test)


def test_a_node_that_cannot_renew_its_session_says_so_of_itself() -> None:
    async def test(node: Operated) -> None:
        leaderless(node)
        await asyncio.sleep(60)
        assert (await node.one("status"))["state"] == "silent"
        row = await node.one("node.ls")
        assert row["state"] == "silent" and "does not confirm its session" in row["note"]
        with pytest.raises(NodeRefused, match="not worked here yet"):
            await node.ask("seat.move", handle="dev", node="n2")

    on_nodes(test)


def test_a_look_does_not_wait_for_a_silent_node_as_long_as_an_act_does() -> None:
    async def test(*nodes: Operated) -> None:
        owner = nodes[0].node.fleet.owner_of("dev")
        mine, other = sorted(nodes, key=lambda node: node.node.node_id != owner)
        await mine.desk.stop()

        async def never(_: bytes) -> bytes:
            await asyncio.Event().wait()
            return b""

        await mine.node.broker.serve(topics.node_control(mine.node.node_id), never)
        loop = asyncio.get_running_loop()
        for verb in ("why", "seat.show"):
            began = loop.time()
            assert await other.ask(verb, handle="dev")
            assert loop.time() - began < 7
        began = loop.time()
        assert (await other.refused("seat.hold", handle="dev")).code == "no_answer"
        assert loop.time() - began > 14

    on_nodes(test, "n1", "n2")
