"""Verbs over two nodes: who answers, what is passed on, and where it is recorded."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from actors.admin import Caller, Refused
from actors.system import Address
from crewlet import topics
from crewlet.errors import NodeRefused
from crewlet.node.verbs import desk as desk_module
from crewlet.node.verbs.following import FORGOTTEN_S
from crewlet.turn import Turn
from tests.node.operated import COMPANY, Operated, Row, on_nodes


def owner(*nodes: Operated) -> tuple[Operated, Operated]:
    """Who works dev, and one that does not."""
    at = nodes[0].node.fleet.owner_of("dev")
    mine = next(node for node in nodes if node.node.node_id == at)
    return mine, next(node for node in nodes if node is not mine)


async def recorded(node: Operated, verb: str) -> list[tuple[str, str, str]]:
    """Of this verb: the node that recorded it, the one it came through, what came of it."""
    return [
        (event.node, event.value("via", str, ""), event.value("outcome", str, ""))
        for event in await node.recorded("operator_acted")
        if event.value("verb", str, "") == verb
    ]


def test_a_verb_about_a_seat_finds_its_owner_and_is_recorded_there_once() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        for asked in (mine, other):
            via = "" if asked is mine else other.node.node_id
            done = await asked.one("seat.hold", handle="dev", reason=f"by {via}")
            assert (done["node"], done["changed"]) == (mine.node.node_id, True)
            assert (mine.node.node_id, via, "done") in await recorded(mine, "seat.hold")
        await other.node.queue.flush(5)
        assert len(await recorded(mine, "seat.hold")) == 2
        shown = await other.one("seat.show", handle="dev")
        assert len(shown["holds"]) == 2 and shown["owner"] == mine.node.node_id
        assert "held" in (await other.ask("why", handle="dev"))[0]["code"]

    on_nodes(test, "n1", "n2")


def test_a_refusal_of_the_owner_is_the_answer() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        failure = await other.refused("seat.delete", handle="dev", yes="ops")
        assert (failure.code, failure.exit) == ("unconfirmed", 2)
        assert (mine.node.node_id, other.node.node_id, "refused") in await recorded(
            mine, "seat.delete"
        )

    on_nodes(test, "n1", "n2")


def test_on_has_the_named_node_answer() -> None:
    async def test(*nodes: Operated) -> None:
        one, two = nodes
        for asked in nodes:
            for named in nodes:
                id = named.node.node_id
                row = await asked.one("on", node=id, verb="status", args={})
                assert row["node"] == id
        (row,) = await one.ask("on", node="n2", verb="tell", args=TOLD)
        assert row["brakes"] == ["quiesced"]
        assert (await two.one("tell", consumer="router", command="describe"))["brakes"]
        assert not (await one.one("tell", consumer="router", command="describe"))["brakes"]
        await two.node.queue.flush(5)
        told = [("n2", "n1", "done"), ("n2", "", "done"), ("n1", "", "done")]
        assert await recorded(one, "tell") == told

    on_nodes(test, "n1", "n2")


TOLD = {"consumer": "router", "command": "quiesce"}


def test_on_refuses_what_is_not_in_the_table_and_who_is_not_there() -> None:
    async def test(*nodes: Operated) -> None:
        one, _ = nodes
        for node in ("n1", "n2"):
            failure = await one.refused("on", node=node, verb="eval", args={})
            assert (failure.code, failure.exit) == ("unknown_verb", 3)
            failure = await one.refused("on", node=node, verb="on", args={})
            assert failure.code == "unknown_verb"
            failure = await one.refused("on", node=node, verb="seat.show", args={"x": 1})
            assert (failure.code, failure.exit) == ("bad_args", 2)
        failure = await one.refused("on", node="n3", verb="status", args={})
        assert (failure.code, failure.exit) == ("no_node", 3)
        for node in ("", "*", "n1.n2", ">", "a b"):
            assert (await one.refused("on", node=node, verb="status", args={})).code == "no_node"

    on_nodes(test, "n1", "n2")


def test_a_node_that_is_named_passes_on_what_is_about_the_seat_of_another() -> None:
    """`crewlet shell --on NODE` is for all lines: also those about seats that are elsewhere."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        named, via = other.node.node_id, mine.node.node_id
        for asked in (mine, other):
            held = {"handle": "dev", "reason": f"by {asked.node.node_id}"}
            (done,) = await asked.ask("on", node=named, verb="seat.hold", args=held)
            assert (done["node"], done["changed"]) == (via, True)
        assert await recorded(mine, "seat.hold") == [(via, via, "done"), (via, named, "done")]
        (shown,) = await mine.ask("on", node=named, verb="seat.show", args={"handle": "dev"})
        assert len(shown["holds"]) == 2

    on_nodes(test, "n1", "n2")


def test_what_was_passed_on_is_passed_on_no_further() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        args = msgspec.Raw(b'{"handle":"dev"}')
        for chosen in (False, True):
            question = desk_module.Question("why", args, Caller(0, "root"), chosen)
            (answer,) = await mine.node.broker.ask(
                topics.node_control(other.node.node_id),
                msgspec.json.encode(question),
                wanted=1,
                within_s=5,
            )
            failure = msgspec.json.decode(answer, type=desk_module.Reply).failure
            assert (failure is None) == chosen
            if failure is not None:
                assert (failure.code, failure.exit) == ("moved", 1)

    on_nodes(test, "n1", "n2")


def test_why_is_answered_where_the_owner_of_the_seat_is_silent() -> None:
    """Then more than ever. It is said of its mail, too, and nobody guesses that it has failed."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        await mine.one("seat.hold", handle="dev")
        await mine.node.send("dev", "hello")
        await mine.desk.stop()
        first, *more = await other.ask("why", handle="dev")
        assert first["code"] == "silent" and mine.node.node_id in first["text"]
        assert [reason["code"] for reason in more] == ["mail"]
        shown = await other.one("seat.show", handle="dev")
        assert shown["state"] == f"on {mine.node.node_id}, which is silent"
        failure = await other.refused("seat.hold", handle="dev")
        assert failure.code == "no_node"
        assert failure.message.startswith(f"dev is worked on {mine.node.node_id}: no node")

    on_nodes(test, "n1", "n2")


def test_who_asks_by_way_of_a_node_hears_which_one_was_silent() -> None:
    """The one that was named has to give up before the one that waits for it does."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        third = next(node for node in nodes if node not in (mine, other))
        await mine.desk.stop()

        async def never(_: bytes) -> bytes:
            await asyncio.Event().wait()
            return b""

        await mine.node.broker.serve(topics.node_control(mine.node.node_id), never)
        args, named = {"handle": "dev"}, other.node.node_id
        failure = await third.refused("on", node=named, verb="seat.hold", args=args)
        assert failure.code == "no_answer"
        assert f"{mine.node.node_id} did not answer within 12 s" in failure.message
        assert (await third.ask("on", node=named, verb="why", args=args))[0]["code"] == "silent"

    on_nodes(test, "n1", "n2", "n3")


def test_a_seat_whose_node_is_silent_can_be_paused_and_resumed() -> None:
    """What kills its node has to be stopped before the next one takes it over."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        await mine.desk.stop()
        for verb, brakes in (("seat.pause", ["paused"]), ("seat.resume", [])):
            assert (await other.one(verb, handle="dev"))["changed"]
            await asyncio.sleep(1)
            described = await mine.node.runtime.describe("dev")
            assert described is not None
            assert list(described.boxes[0].holds) == brakes
            assert (other.node.node_id, "", "done") in await recorded(other, verb)

    on_nodes(test, "n1", "n2")


def test_a_seat_on_its_way_is_not_said_to_be_on_a_node_that_drains() -> None:
    async def turn(_: Turn) -> str:
        await asyncio.sleep(60)
        return "done"

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        await mine.node.send("dev", "go")
        await asyncio.sleep(1)
        await mine.one("seat.move", handle="dev", node=other.node.node_id)
        await asyncio.sleep(1)
        said = {reason["code"]: reason["text"] for reason in await mine.ask("why", handle="dev")}
        assert list(said) == ["moving", "working", "mail"]
        assert "in hand" in said["mail"]
        await mine.one("node.drain")
        assert (await mine.ask("why", handle="dev"))[0]["code"] == "draining"

    on_nodes(test, "n1", "n2", turn=turn)


def test_whoever_is_told_something_is_found_and_a_router_is_that_of_the_node_that_is_asked() -> (
    None
):
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        told = await other.one("tell", consumer="dev", command="quiesce")
        assert told["brakes"] == ["quiesced"]
        assert (await mine.ask("why", handle="dev"))[0]["code"] == "quiesced"
        await other.one("tell", consumer="router", command="quiesce")
        assert not (await mine.one("tell", consumer="router", command="describe"))["brakes"]

    on_nodes(test, "n1", "n2")


def test_a_seat_that_leaves_when_it_is_asked_fails_no_look_at_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        runtime = mine.node.runtime
        found = runtime._seat
        left = await found("dev")
        await mine.one("seat.move", handle="dev", node=other.node.node_id)
        await asyncio.sleep(30)
        answers = [left]

        async def late(handle: str) -> Address | None:
            return answers.pop() if handle == "dev" and answers else await found(handle)

        monkeypatch.setattr(runtime, "_seat", late)
        assert await runtime.describe("dev") is None and answers == []

    on_nodes(test, "n1", "n2")


@pytest.mark.parametrize("named", [False, True])
def test_a_trace_is_carried_from_the_node_that_works_the_seat(*, named: bool) -> None:
    """Over both: a named node passes it on like anything else."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        args = {"handle": "dev"}
        if named:
            rows = mine.rows("on", node=other.node.node_id, verb="trace.on", args=args)
        else:
            rows = other.rows("trace.on", **args)
        seen: list[Row] = []

        async def watch() -> None:
            seen.extend([msgspec.json.decode(msgspec.json.encode(row)) async for row in rows])

        watching = asyncio.create_task(watch())
        await asyncio.sleep(60)  # nothing happens for longer than a piece, or anybody, waits
        await mine.node.send("dev", "hello")
        await asyncio.sleep(1)
        assert "1 who watched" in (await other.one("trace.off", **args))["note"]
        await asyncio.wait_for(watching, 10)
        assert [row["box"] for row in seen[:3]] == ["inbox", "control", "reflect"]
        assert {"running", "pulling"} <= {row["after"] for row in seen}

    on_nodes(test, "n1", "n2")


def test_who_stops_following_leaves_no_watcher_and_who_dies_only_for_a_while() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)

        async def watched() -> str:
            return str((await mine.one("trace.off", handle="dev"))["note"])

        rows = other.rows("trace.on", handle="dev")
        await anext(rows)
        await rows.aclose()
        assert await watched() == "nobody watched"

        args = msgspec.Raw(b'{"handle":"dev"}')
        asked = desk_module.Question("trace.on", args, Caller(0, "root"), follow="x")
        await other.node.broker.ask(
            topics.node_control(mine.node.node_id), msgspec.json.encode(asked), wanted=1, within_s=5
        )
        await asyncio.sleep(FORGOTTEN_S - 1)
        assert mine.desk._following._open
        await asyncio.sleep(2)
        assert not mine.desk._following._open and await watched() == "nobody watched"

    on_nodes(test, "n1", "n2")


def test_a_trace_of_a_seat_that_leaves_says_so() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        for asked in (mine, other):
            await asyncio.sleep(30)
            mine_now, other_now = owner(mine, other)
            rows = asked.rows("trace.on", handle="dev")
            await anext(rows)
            await mine_now.one("seat.move", handle="dev", node=other_now.node.node_id)
            with pytest.raises(Refused, match="trace it again"):
                async with asyncio.timeout(60):
                    async for _ in rows:
                        pass

    on_nodes(test, "n1", "n2")


def test_a_follower_ends_with_the_node_that_it_follows() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        following = asyncio.create_task(other.ask("trace.on", handle="dev"))
        await asyncio.sleep(1)
        await mine.desk.stop()
        assert len(await asyncio.wait_for(following, 10)) == 3

    on_nodes(test, "n1", "n2")


def test_a_follower_of_a_node_that_dies_is_told() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        rows = other.rows("trace.on", handle="dev")
        await anext(rows)
        assert mine.desk._served is not None
        await mine.desk._served.close()
        with pytest.raises(Refused) as refused:
            async with asyncio.timeout(60):
                async for _ in rows:
                    pass
        assert refused.value.failure.code == "no_node"

    on_nodes(test, "n1", "n2")


def test_a_move_that_cannot_be_says_why() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        to = other.node.node_id
        with pytest.raises(NodeRefused, match="there are: n1, n2"):
            await mine.ask("seat.move", handle="dev", node="n9")
        await other.one("node.drain")
        await asyncio.sleep(30)
        with pytest.raises(NodeRefused, match=f"{to} may not work dev: it drains"):
            await mine.ask("seat.move", handle="dev", node=to)

    on_nodes(test, "n1", "n2")


def test_a_seat_that_has_to_go_is_not_said_to_be_there_already() -> None:
    """Its turn still runs, and the node that it is on may not work it any more."""

    async def turn(_: Turn) -> str:
        await asyncio.sleep(60)
        return "done"

    async def test(*nodes: Operated) -> None:
        mine, _ = owner(*nodes)
        here = mine.node.node_id
        await mine.node.send("dev", "go")
        await asyncio.sleep(1)
        await mine.one("node.label", labels={"gpu": ""})
        await asyncio.sleep(1)
        with pytest.raises(NodeRefused, match=f"{here} may not work dev: it lacks gpu=yes"):
            await mine.ask("seat.move", handle="dev", node=here)

    picky = COMPANY.replace("}\n", ", placement: {labels: {gpu: 'yes'}}}\n")
    picky = picky.replace("kind: human, placement: {labels: {gpu: 'yes'}}", "kind: human")
    on_nodes(test, "n1", "n2", turn=turn, company=picky, labels={"gpu": "yes"})


def test_a_seat_of_nobody_is_not_said_to_be_on_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(node: Operated) -> None:
        monkeypatch.setattr(node.node.fleet, "owner_of", lambda handle: None)
        with pytest.raises(NodeRefused, match="dev is on no node now: `crewlet why dev`"):
            await node.ask("seat.move", handle="dev", node="n1")

    on_nodes(test)


def test_another_node_may_be_named_until_the_turn_has_ended() -> None:
    """Also the one that it is on: an operator may think again."""

    async def turn(_: Turn) -> str:
        await asyncio.sleep(60)
        return "done"

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        here, there = mine.node.node_id, other.node.node_id
        await mine.node.send("dev", "go")
        await asyncio.sleep(1)
        stays = await other.one("seat.move", handle="dev", node=here)
        assert not stays["changed"] and "already" in stays["note"]
        goes = await other.one("seat.move", handle="dev", node=there)
        assert goes["changed"] and f"goes to {there}" in goes["note"]
        back = await other.one("seat.move", handle="dev", node=here)
        assert back["changed"] and "dev stays" in back["note"]
        await asyncio.sleep(90)
        assert [each.node.fleet.owner_of("dev") for each in nodes] == [here] * 2
        assert (await mine.one("seat.show", handle="dev"))["state"] == "idle"

    on_nodes(test, "n1", "n2", turn=turn)


def test_a_node_that_leaves_for_good_is_not_undrained() -> None:
    """An embedder's node is told by nobody but its block that it stops."""

    async def turn(_: Turn) -> str:
        await asyncio.sleep(20)
        return "done"

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        await mine.node.send("dev", "go")
        await asyncio.sleep(1)
        await mine.one("node.drain")
        stopping = asyncio.create_task(mine.node.drain())
        await asyncio.sleep(1)
        calls: list[tuple[str, Row]] = [
            ("node.undrain", {}),
            ("node.label", {"labels": {"gpu": "yes"}}),
        ]
        for verb, args in calls:
            with pytest.raises(NodeRefused, match="is stopping"):
                await mine.ask(verb, **args)
        (own, *_) = await mine.ask("node.ls")
        assert own["state"] == "leaving" and mine.node.edge.draining
        assert (await stopping).cut == ()
        await asyncio.sleep(5)
        assert other.node.fleet.owner_of("dev") == other.node.node_id

    on_nodes(test, "n1", "n2", turn=turn)


@pytest.mark.parametrize("verb", ["node.drain", "node.undrain"])
def test_what_is_said_twice_is_said_once(verb: str) -> None:
    async def test(*nodes: Operated) -> None:
        one, two = nodes
        if verb == "node.undrain":
            assert "is not drained" in (await one.one(verb, node="n2"))["note"]
            await one.one("node.drain", node="n2")
        first, second = [(await one.one(verb, node="n2"))["note"] for _ in range(2)]
        again = "told before" if verb == "node.drain" else "is not drained"
        assert again in second and again not in first
        assert two.node.edge.draining == (verb == "node.drain")
        failure = await one.refused(verb, node="n9")
        assert (failure.code, failure.exit) == ("no_node", 3)

    on_nodes(test, "n1", "n2")


def test_a_node_that_is_silent_may_have_done_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(*nodes: Operated) -> None:
        one, two = nodes
        await two.desk.stop()

        async def never(_: bytes) -> bytes:
            await asyncio.Event().wait()
            return b""

        await two.node.broker.serve(topics.node_control("n2"), never)
        began = asyncio.get_running_loop().time()
        failure = await one.refused("on", node="n2", verb="node.drain", args={})
        assert (failure.code, failure.exit) == ("no_answer", 1)
        assert "not known" in failure.message
        assert asyncio.get_running_loop().time() - began == pytest.approx(desk_module.ANSWER_S)

    on_nodes(test, "n1", "n2")


def test_a_node_answers_whatever_it_is_sent() -> None:
    async def test(*nodes: Operated) -> None:
        one, _ = nodes
        subject = topics.node_control("n2")
        good = desk_module.Question("status", msgspec.Raw(b"{}"), Caller(0, "root"))
        for body in (b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"verb":"status"}'):
            (answer,) = await one.node.broker.ask(subject, body, wanted=1, within_s=5)
            assert msgspec.json.decode(answer, type=desk_module.Reply).failure is not None
        (answer,) = await one.node.broker.ask(
            subject, msgspec.json.encode(good), wanted=1, within_s=5
        )
        reply = msgspec.json.decode(answer, type=desk_module.Reply)
        assert reply.failure is None and len(reply.rows) == 1

    on_nodes(test, "n1", "n2")


def test_an_answer_that_is_too_large_to_be_carried_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "MOST_BYTES", 200)

    async def test(*nodes: Operated) -> None:
        one, _ = nodes
        failure = await one.refused("on", node="n2", verb="tree", args={})
        assert failure.code == "too_large"

    on_nodes(test, "n1", "n2")


@pytest.mark.certifies(147)
def test_a_paused_seat_rests_on_whatever_node_works_it_next() -> None:
    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        await other.one("seat.pause", handle="dev")
        await mine.node.send("dev", "hello")
        await mine.node.drain(0)
        async with asyncio.timeout(300):
            while other.node.fleet.owner_of("dev") != other.node.node_id:
                await asyncio.sleep(0.1)
        await asyncio.sleep(60)
        shown = await other.one("seat.show", handle="dev")
        assert (shown["holds"], shown["turns"], shown["waiting"]) == (["paused"], 0, 1)
        first = (await other.ask("why", handle="dev"))[0]
        assert first["code"] == "paused" and "ann paused it" in first["text"]
        await other.one("seat.resume", handle="dev")
        await asyncio.sleep(5)
        assert (await other.one("seat.show", handle="dev"))["turns"] == 1
        assert len(await other.recorded("seat_paused")) == 1
        assert len(await other.recorded("seat_resumed")) == 1

    on_nodes(test, "n1", "n2")


@pytest.mark.field("C11")
@pytest.mark.parametrize("verb", ["node.drain", "seat.move", "seat.quiesce"])
def test_a_turn_that_asks_is_not_waited_for(verb: str) -> None:
    """It asks through the node that works it, gets its answer at once, and ends by itself."""
    nodes_: list[Operated] = []
    answers: list[Row] = []
    took: list[float] = []
    ran: list[str] = []

    async def turn(given: Turn) -> str:
        ran.append(given.seat.handle)
        mine, other = owner(*nodes_)
        args = {
            "node.drain": {"node": mine.node.node_id},
            "seat.move": {"handle": "dev", "node": other.node.node_id},
            "seat.quiesce": {"handle": "dev"},
        }[verb]
        began = asyncio.get_running_loop().time()
        answers.append(await mine.one(verb, **args))
        took.append(asyncio.get_running_loop().time() - began)
        await asyncio.sleep(2)
        return "asked"

    async def test(*nodes: Operated) -> None:
        nodes_.extend(nodes)
        mine, other = owner(*nodes)
        await mine.node.send("dev", "go")
        await asyncio.sleep(60)
        assert ran == ["dev"] and len(answers) == 1 and took[0] < 1
        done = await other.recorded("agent_turn_completed")
        assert [event.value("outcome", str, "") for event in done] == ["ack"]
        if verb != "seat.quiesce":
            assert other.node.fleet.owner_of("dev") == other.node.node_id

    on_nodes(test, "n1", "n2", turn=turn)
