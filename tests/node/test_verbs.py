"""Every verb of a node's table: what it answers, what it refuses, and what it leaves behind."""

from __future__ import annotations

import asyncio

import pytest

from actors.admin import Refused
from crewlet.errors import CrewletError, NodeRefused
from crewlet.node.verbs import operations_of
from crewlet.turn import Turn
from tests.node.operated import Operated, Row, on_nodes

GOOD: dict[str, dict[str, object]] = {
    "status": {},
    "drain": {},
    "seats": {},
    "send": {"handle": "dev", "text": "a secret thing"},
    "events": {"last": 3},
    "apply": {"text": "a secret thing"},
    "revision.try": {"text": "a secret thing"},
    "revision.ls": {},
    "revision.show": {"number": 1},
    "revision.diff": {"old": 1, "new": 1},
    "dlq.list": {},
    "dlq.show": {"id": "17"},
    "dlq.replay": {"ids": ["17", "a secret thing"]},
    "dlq.drop": {"ids": ["17"]},
    "channel.ls": {},
    "channel.show": {"channel": "a2a-0123456789ab"},
    "ask": {"handle": "ops", "brief": "a secret thing", "turn": "turn-0"},
    "seat.show": {"handle": "dev"},
    "seat.hold": {"handle": "dev", "reason": "a secret thing"},
    "seat.release": {"handle": "dev", "reason": "a secret thing"},
    "seat.quiesce": {"handle": "dev"},
    "seat.unquiesce": {"handle": "dev"},
    "seat.detach": {"handle": "dev"},
    "seat.attach": {"handle": "dev"},
    "seat.pause": {"handle": "dev"},
    "seat.resume": {"handle": "dev"},
    "seat.move": {"handle": "dev", "node": "n1"},
    "seat.delete": {"handle": "dev", "yes": "dev"},
    "run.ls": {},
    "run.show": {"handle": "dev", "run_id": "r1"},
    "run.complete": {"handle": "dev", "run_id": "r1", "text": "a secret thing"},
    "run.fail": {"handle": "dev", "run_id": "r1", "text": "a secret thing"},
    "run.ask": {"handle": "dev", "run_id": "r1", "text": "a secret thing"},
    "run.take": {"handle": "dev", "run_id": "r1"},
    "node.ls": {},
    "node.drain": {},
    "node.undrain": {},
    "node.label": {"labels": {"gpu": "a secret thing"}},
    "lease.ls": {},
    "schedule.ls": {},
    "names": {},
    "tree": {},
    "ps": {},
    "consumer.ls": {},
    "inflight": {},
    "inbox.peek": {"handle": "dev"},
    "tell": {"consumer": "dev", "command": "hold", "reason": "a secret thing"},
    "trace.on": {"handle": "dev"},
    "trace.off": {"handle": "dev"},
    "why": {"handle": "dev"},
    "top": {},
}
"""One call of every verb; where a verb acts, with a text that must not be recorded."""

BAD: list[object] = [None, 1, ["dev"], {"x": 1}]

LAST = ("seat.delete", "drain")


async def call(node: Operated, verb: str, args: dict[str, object]) -> list[Row]:
    """The answer, the first row of one without an end; a refusal is fine here."""
    if verb == "trace.on":
        rows = node.rows(verb, **args)
        first = [await anext(rows)]
        await rows.aclose()
        return first
    try:
        return await node.ask(verb, **args)
    except (Refused, CrewletError):
        return []


def test_the_matrix_has_every_verb() -> None:
    async def test(node: Operated) -> None:
        assert set(GOOD) == set(operations_of(node.node))

    on_nodes(test)


def test_what_acts_is_recorded_once_with_who_and_what_and_never_the_arguments() -> None:
    """docs/guide/shell.md; what only looks leaves nothing."""

    async def test(node: Operated) -> None:
        operations = operations_of(node.node)
        for verb in sorted(GOOD, key=lambda verb: verb in LAST):
            before = len(await node.recorded("operator_acted"))
            await call(node, verb, GOOD[verb])
            events = (await node.recorded("operator_acted"))[before:]
            assert len(events) == (operations[verb].target is not None), verb
            for event in events:
                assert event.value("actor", str, "") == "ann"
                assert event.value("uid", int, 0) == 1000
                assert event.value("verb", str, "") == verb
                assert event.value("outcome", str, "") in ("done", "refused")
                assert "secret" not in str(event), verb
                wanted = {"send": "dev", "dlq.drop": "17", "dlq.replay": ""}.get(verb)
                if verb.startswith(("seat.", "run.", "trace.")) or verb == "tell":
                    wanted = "dev"
                assert event.value("target", str, "?") == (wanted if wanted is not None else "n1")

    on_nodes(test)


@pytest.mark.parametrize("verb", sorted(GOOD))
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_done(verb: str) -> None:
    async def test(node: Operated) -> None:
        for args in [*({**GOOD[verb], "x": bad} for bad in BAD)]:
            failure = await node.refused(verb, **args)
            assert (failure.code, failure.exit) == ("bad_args", 2)
        for key in GOOD[verb]:
            failure = await node.refused(verb, **{**GOOD[verb], key: {"x": 1}})
            assert (failure.code, failure.exit) == ("bad_args", 2)
        assert await node.recorded("operator_acted") == []
        assert not node.node.stopping.is_set()

    on_nodes(test)


SEATS = ["boss", "nobody", "", "DEV", "dev.inbox", "*", ">", "..", "é", "a\x00b", "x" * 70_000]


@pytest.mark.parametrize("verb", [verb for verb in GOOD if "handle" in GOOD[verb]])
def test_what_is_no_agent_seat_is_refused_with_those_there_are(verb: str) -> None:
    async def test(node: Operated) -> None:
        for handle in SEATS:
            failure = await node.refused(verb, **{**GOOD[verb], "handle": handle})
            assert failure.exit == 3, (handle, failure)
            assert "dev, ops" in failure.message
            assert len(failure.message) < 400 or verb == "send"
        told = await node.recorded("operator_acted")
        assert {event.value("target", str, "?") for event in told} <= {"", "boss", "nobody"}
        assert (await node.one("seat.show", handle="dev"))["state"] == "idle"

    on_nodes(test)


def test_brakes_answer_what_they_did_and_how_they_are_undone() -> None:
    async def test(node: Operated) -> None:
        for act, undo in (("quiesce", "unquiesce"), ("pause", "resume"), ("hold", "release")):
            done = await node.one(f"seat.{act}", handle="dev")
            assert (done["target"], done["node"], done["changed"]) == ("dev", "n1", True)
            assert f"seat {undo} dev" in done["note"]
            assert not (await node.one(f"seat.{act}", handle="dev"))["changed"]
            assert "resting" in (await node.one("seat.show", handle="dev"))["state"]
            assert (await node.one(f"seat.{undo}", handle="dev"))["changed"]
            assert not (await node.one(f"seat.{undo}", handle="dev"))["changed"]
            assert (await node.one("seat.show", handle="dev"))["state"] == "idle"

    on_nodes(test)


@pytest.mark.certifies(136)
def test_a_hold_has_a_name_and_mail_flows_when_the_last_is_lifted() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.hold", handle="dev", reason="ann's key")
        await node.one("seat.hold", handle="dev")
        await node.node.send("dev", "hello")
        assert (
            "still held: operator"
            in (await node.one("seat.release", handle="dev", reason="ann's key"))["note"]
        )
        assert (await node.one("seat.show", handle="dev"))["waiting"] == 1
        await node.one("seat.release", handle="dev")
        await asyncio.sleep(1)
        assert (await node.one("seat.show", handle="dev"))["turns"] == 1

    on_nodes(test)


def test_what_lifts_one_brake_names_those_that_are_left() -> None:
    async def test(node: Operated) -> None:
        lifts = ("seat.release", "seat.unquiesce", "seat.resume")
        await node.one("seat.quiesce", handle="dev")
        await node.one("seat.hold", handle="dev", reason="key")
        notes = [(await node.one(verb, handle="dev"))["note"] for verb in lifts]
        assert notes == [
            "it was not held by that; still quiesced, held: key",
            "still held: key",
            "still held: key",
        ]
        await node.one("seat.detach", handle="dev")
        for verb in lifts:
            assert "`crewlet seat attach dev`" in (await node.one(verb, handle="dev"))["note"]
        await node.one("seat.attach", handle="dev")
        assert (await node.one("seat.resume", handle="dev"))["note"] == "mail flows"

    on_nodes(test)


def test_a_detached_seat_says_so_whatever_holds_it_and_takes_no_quiesce() -> None:
    """A hold outlasts the attach that follows; a quiesce would be lost without a word."""

    async def test(node: Operated) -> None:
        await node.one("seat.detach", handle="dev")
        failure = await node.refused("seat.quiesce", handle="dev")
        assert (failure.code, failure.exit) == ("not_now", 3)
        assert "`crewlet seat hold dev`" in failure.message
        await node.one("seat.hold", handle="dev")
        assert (await node.one("seat.show", handle="dev"))["state"] == "detached"
        await node.one("seat.attach", handle="dev")
        assert (await node.one("seat.show", handle="dev"))["state"] == "resting (held: operator)"

    on_nodes(test)


def test_mail_for_a_seat_without_a_mailbox_says_how_it_gets_one() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.delete", handle="dev", yes="dev")
        failure = await node.refused("send", handle="dev", text="hello")
        assert (failure.code, failure.exit) == ("no_mailbox", 1)
        assert "`crewlet seat attach dev`" in failure.message and "nothing was kept" in str(failure)

    on_nodes(test)


@pytest.mark.parametrize("reason", ["", "x" * 61, "a\nb", "\x1b[31m"])
def test_a_reason_is_one_line(reason: str) -> None:
    async def test(node: Operated) -> None:
        for verb in ("seat.hold", "seat.release"):
            assert (await node.refused(verb, handle="dev", reason=reason)).exit == 2

    on_nodes(test)


def test_holds_that_stand_for_something_are_not_lifted_by_name() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.pause", handle="dev")
        for verb, args in (
            ("seat.release", {"handle": "dev", "reason": "paused"}),
            ("tell", {"consumer": "dev", "command": "lift", "reason": "paused"}),
        ):
            failure = await node.refused(verb, **args)
            assert "`crewlet seat resume dev`" in failure.message
        assert (await node.one("seat.show", handle="dev"))["holds"] == ["paused"]
        assert "no handler" not in (await node.one("seat.show", handle="dev"))["holds"]

    on_nodes(test)


@pytest.mark.certifies(147)
def test_each_change_of_a_pause_is_published_once_whoever_presses() -> None:
    async def test(node: Operated) -> None:
        for act, type in (("pause", "seat_paused"), ("resume", "seat_resumed")):
            done = await asyncio.gather(*(node.one(f"seat.{act}", handle="dev") for _ in range(10)))
            assert sum(row["changed"] for row in done) == 1
            (event,) = await node.recorded(type)
            assert event.value("agent_role", str, "") == "dev"
            assert event.value("actor", str, "") == "ann"

    on_nodes(test)


@pytest.mark.certifies(136, 147)
def test_a_pause_outlives_a_detach_and_other_holds_do_not() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.pause", handle="dev")
        await node.one("seat.hold", handle="dev")
        assert (await node.one("seat.detach", handle="dev"))["changed"]
        assert not (await node.one("seat.detach", handle="dev"))["changed"]
        await node.node.send("dev", "hello")
        assert (await node.one("seat.attach", handle="dev"))["changed"]
        assert not (await node.one("seat.attach", handle="dev"))["changed"]
        shown = await node.one("seat.show", handle="dev")
        assert (shown["holds"], shown["waiting"], shown["paused_by"]) == (["paused"], 1, "ann")
        await node.one("seat.resume", handle="dev")
        await asyncio.sleep(1)
        assert (await node.one("seat.show", handle="dev"))["turns"] == 1

    on_nodes(test)


def test_deleting_takes_the_handle_again_and_attaching_begins_anew() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.hold", handle="dev")
        await node.node.send("dev", "lost")
        failure = await node.refused("seat.delete", handle="dev", yes="ops")
        assert (failure.code, failure.exit) == ("unconfirmed", 2)
        assert (await node.one("seat.show", handle="dev"))["waiting"] == 1
        done = await node.one("seat.delete", handle="dev", yes="dev")
        assert done["changed"] and "1 message is gone" in done["note"]
        assert (await node.ask("why", handle="dev"))[0]["code"] == "detached"
        await node.one("seat.attach", handle="dev")
        await node.node.send("dev", "kept")
        await asyncio.sleep(1)
        shown = await node.one("seat.show", handle="dev")
        assert (shown["state"], shown["turns"], shown["waiting"]) == ("idle", 1, 0)

    on_nodes(test)


def test_a_look_into_an_inbox_shows_what_waits_and_takes_nothing() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.hold", handle="dev")
        sent = [await node.node.send("dev", f"text {n}", sender="bob") for n in range(3)]
        await asyncio.sleep(60)
        rows = await node.ask("inbox.peek", handle="dev", most=2)
        assert [row["event_id"] for row in rows] == [one.event.id for one in sent[:2]]
        assert [(row["handed_out"], row["type"]) for row in rows] == [(False, "task_assigned")] * 2
        assert all(59 < row["waits_s"] < 61 and "event" not in row for row in rows)
        (whole,) = await node.ask("inbox.peek", handle="dev", most=1, whole=True)
        assert whole["event"]["text"] == "text 0"
        for most in (0, -1, 101):
            assert (await node.refused("inbox.peek", handle="dev", most=most)).exit == 2
        assert (await node.one("seat.show", handle="dev"))["waiting"] == 3

    on_nodes(test)


def test_what_is_inside_a_node_is_shown_while_a_turn_runs() -> None:
    async def turn(_: Turn) -> str:
        await asyncio.sleep(30)
        return "done"

    async def test(node: Operated) -> None:
        await node.node.send("dev", "hello")
        await asyncio.sleep(10)
        (running,) = await node.ask("ps")
        assert (running["seat"], running["state"]) == ("dev", "running")
        assert 9 < running["for_s"] < 11
        (held,) = await node.ask("inflight")
        assert (held["handle"], held["count"]) == ("dev", 1)
        assert 9 < held["held_s"] < 11
        tree = {row["name"]: row for row in await node.ask("tree")}
        assert tree["seat dev"]["level"] == tree["turn of inbox"]["level"] - 1
        assert tree["turn of inbox"]["effects"] == 1
        boxes = {(row["consumer"], row["box"]): row for row in await node.ask("consumer.ls")}
        assert boxes["dev", "inbox"]["running"] == running["conversation"]
        assert boxes["dev", "inbox"]["state"] == "working"
        assert (await node.one("seat.show", handle="dev"))["inbox"] == "working"
        assert boxes["router", "inbound"]["state"] == boxes["ops", "inbox"]["state"] == "idle"
        top = await node.one("top")
        assert (top["running"], top["in_flight"]) == (1, 1)
        assert [row["handle"] for row in top["busiest"]] == ["dev"]

    on_nodes(test, turn=turn)


def test_a_consumer_is_told_one_of_a_few_things() -> None:
    async def test(node: Operated) -> None:
        told = await node.one("tell", consumer="router", command="quiesce")
        assert (told["box"], told["brakes"]) == ("inbound", ["quiesced"])
        told = await node.one("tell", consumer="router", command="unquiesce")
        assert told["brakes"] == []
        told = await node.one("tell", consumer="dev", command="hold", box="reflect", reason="slow")
        assert told["brakes"] == ["held: slow"]
        assert (await node.one("seat.show", handle="dev"))["inbox"] == "idle"
        for args in (
            {"consumer": "dev", "command": "pause"},
            {"consumer": "dev", "command": "Drain"},
            {"consumer": "dev", "command": "__import__"},
        ):
            assert (await node.refused("tell", **args)).code == "bad_args"
        assert (await node.refused("tell", consumer="gateway", command="quiesce")).exit == 3
        failure = await node.refused("tell", consumer="nobody", command="quiesce")
        assert failure.code == "unknown_seat" and "agent seats: dev, ops" in failure.message
        assert (
            "inbox, control, reflect"
            in (
                await node.refused("tell", consumer="dev", command="describe", box="outbox")
            ).message
        )

    on_nodes(test)


def test_a_trace_shows_the_steps_of_a_seat_until_it_is_ended() -> None:
    async def test(node: Operated) -> None:
        seen: list[Row] = []

        async def watch() -> None:
            seen.extend(await node.ask("trace.on", handle="dev"))

        watching = asyncio.create_task(watch())
        other = node.rows("trace.on", handle="dev")
        await anext(other)
        await asyncio.sleep(1)
        await node.node.send("dev", "hello")
        await asyncio.sleep(1)
        assert "2 who watched" in (await node.one("trace.off", handle="dev"))["note"]
        await watching
        assert [row async for row in other]
        assert {row["box"] for row in seen[:3]} == {"inbox", "control", "reflect"}
        steps = [(row["given"], row["after"]) for row in seen[3:] if row["box"] == "inbox"]
        assert ("Pulled", "running") in steps
        assert steps.index(("Pulled", "running")) < [given for given, _ in steps].index("Ended")
        assert "nobody watched" in (await node.one("trace.off", handle="dev"))["note"]
        before = len(seen)
        await node.node.send("dev", "unseen")
        await asyncio.sleep(1)
        assert len(seen) == before

    on_nodes(test)


def test_a_watcher_that_leaves_is_forgotten() -> None:
    async def test(node: Operated) -> None:
        rows = node.rows("trace.on", handle="dev")
        await anext(rows)
        await rows.aclose()
        assert "nobody watched" in (await node.one("trace.off", handle="dev"))["note"]
        await node.node.send("dev", "hello")
        await asyncio.sleep(1)
        assert (await node.one("seat.show", handle="dev"))["turns"] == 1

    on_nodes(test)


def test_a_drain_and_a_label_say_how_the_node_stands() -> None:
    async def test(node: Operated) -> None:
        labels = {"zone": "west"}
        assert (await node.one("node.label", labels=labels))["state"] == "serving"
        await node.one("node.drain")
        assert "told before" in (await node.one("node.drain"))["note"]
        await asyncio.sleep(30)
        assert (await node.one("node.label", labels=labels))["state"] == "drained"
        rows = {row["resource"]: row for row in await node.ask("lease.ls")}
        await node.one("node.undrain")
        await asyncio.sleep(60)
        held = {row["resource"]: row for row in await node.ask("lease.ls")}
        assert held.keys() == rows.keys() and not any(row["note"] for row in held.values())

    on_nodes(test)


def test_the_last_events_of_a_type_are_shown_however_many_others_came_since() -> None:
    async def test(node: Operated) -> None:
        await node.one("seat.hold", handle="dev")
        await node.one("seat.release", handle="dev")
        for _ in range(30):
            await node.node.send("ops", "hello")
            await asyncio.sleep(1)
        await node.node.queue.flush(5)
        for type, wanted in (
            ("operator_acted", ["seat.hold", "seat.release"]),
            ("operator_*", ["seat.hold", "seat.release"]),
            ("op?rator_acte[d]", ["seat.hold", "seat.release"]),
            ("operator", []),
            ("no such type", []),
            ("", []),
        ):
            rows = await node.ask("events", last=2, type=type)
            assert [row["verb"] for row in rows] == wanted
        (row,) = await node.ask("events", last=1, type="operator_acted")
        assert row["verb"] == "seat.release"
        assert len(await node.ask("events", last=7)) == 7

    on_nodes(test)


def test_why_says_of_each_node_why_it_may_not_work_a_seat_that_nobody_works() -> None:
    async def test(node: Operated) -> None:
        await node.one("node.drain")
        await asyncio.sleep(30)
        (reason,) = await node.ask("why", handle="dev")
        assert reason["code"] == "unplaceable" and "(n1: it drains)" in reason["text"]
        await node.one("node.undrain")
        await asyncio.sleep(60)
        assert [reason["code"] for reason in await node.ask("why", handle="dev")] == ["idle"]

    on_nodes(test)


@pytest.mark.parametrize(
    "labels", [{"Zone": "a"}, {"": "a"}, {"a b": "a"}, {"gpu": "a\nb"}, {"gpu": " a"}]
)
def test_a_label_that_no_placement_could_ask_for_is_refused(labels: dict[str, str]) -> None:
    async def test(node: Operated) -> None:
        with pytest.raises(NodeRefused, match=r"is no name|is one line"):
            await node.ask("node.label", labels={**labels, "good": "yes"})
        assert (await node.one("node.ls"))["labels"] == {}

    on_nodes(test)


def test_a_drained_node_has_nothing_run_and_works_again() -> None:
    async def test(node: Operated) -> None:
        assert (await node.one("node.undrain"))["note"] == "n1 is not drained"
        await node.one("node.drain")
        await asyncio.sleep(30)
        await node.node.send("dev", "hello")
        await asyncio.sleep(30)
        assert (await node.one("seat.show", handle="dev"))["turns"] == 0
        assert (await node.one("status"))["state"] == "draining"
        assert (await node.one("node.ls"))["state"] == "drained"
        await node.one("node.undrain")
        await asyncio.sleep(60)
        assert (await node.one("seat.show", handle="dev"))["turns"] == 1
        assert (await node.one("node.ls"))["state"] == "serving"

    on_nodes(test)
