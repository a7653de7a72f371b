"""A company that is applied anew while its nodes run: whole nodes, virtual time."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from actors.admin import Refused
from actors.delivery import Mailbox
from actors.messages import BoxState
from actors.seat import INBOX
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.coordination.store import CONFIG
from crewlet.errors import ConfigError, NodeRefused
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.node.reconcile import LOOK_S, SPREAD
from crewlet.turn import Turn
from tests.node.operated import Operated
from tests.node.revised import DEV, FIRST, HEAD, OPS, QA, Fleet, assigned, on_a_fleet, text

SECOND = text(DEV, QA)
"""ops goes, qa comes."""

LONGEST_LOOK_S = LOOK_S * (1 + SPREAD)


async def worked(turn: Turn) -> str:
    """A handler that a company file names."""
    return f"worked {turn.events[0].body}"


async def revision_of(node: Operated) -> object:
    return (await node.one("status"))["revision"]


async def all_at(fleet: Fleet, number: int, within_s: float = 2.0) -> None:
    async with asyncio.timeout(within_s):
        while {await revision_of(each) for each in fleet.nodes.values()} != {number}:
            await asyncio.sleep(0.05)


@pytest.mark.certifies(21, 123, 132)
def test_applied_on_one_node_both_route_by_it_from_the_next_delivery_on():
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        await fleet.owned("dev", "ops")
        answer = await one.one("apply", text=SECOND)
        assert (answer["revision"], answer["changed"]) == (2, True)
        assert (answer["added"], answer["removed"]) == (["qa"], ["ops"])
        assert "mail of ops is kept for 24 hours" in answer["note"]
        await all_at(fleet, 2)
        states = await one.node.broker.list(topics.INBOXES)
        assert {topics.handle_of(state.mailbox.topic) for state in states} == {"dev", "ops", "qa"}
        for number, node in enumerate((one, two), 1):
            await assigned(node, "octo-qa", number)
            await assigned(node, "octo-ops", 10 + number)
        await fleet.owned("dev", "qa")
        await asyncio.sleep(5)
        assert [seat for _, seat, _ in fleet.worked] == ["qa", "qa"]
        assert (await one.refused("send", handle="ops", text="x")).code == "node_refused"
        rows = await two.ask("node.ls")
        assert {(row["id"], row["revision"], row["behind"]) for row in rows} == {
            ("n1", 2, ""),
            ("n2", 2, ""),
        }
        applied = await one.recorded("config_revision_applied")
        assert {(each.node, each.value("revision", int, 0)) for each in applied} == {
            ("n1", 2),
            ("n2", 2),
        }
        assert len(await one.recorded("config_revision_activated")) == 2, "the first file, and this"

    on_a_fleet(test, "n1", "n2")


@pytest.mark.certifies(132)
def test_nothing_is_routed_to_a_seat_whose_mailbox_is_not_there_yet():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        broker = one.node.broker
        ensure = broker.ensure

        async def slowly(mailbox: Mailbox) -> bool:
            await asyncio.sleep(5)
            assert one.node.company.seat("qa") is None, "it may be routed to already"
            return await ensure(mailbox)

        broker.ensure = slowly  # type: ignore[method-assign]
        applying = asyncio.ensure_future(one.ask("apply", text=SECOND))
        await asyncio.sleep(1)
        await assigned(one, "octo-qa", 1)
        await asyncio.sleep(1)
        assert one.node.company.seat("qa") is None, "it may be routed to already"
        broker.ensure = ensure  # type: ignore[method-assign]
        await applying
        await assigned(one, "octo-qa", 2)
        await fleet.owned("qa")
        await asyncio.sleep(5)
        assert [seat for _, seat, _ in fleet.worked] == ["qa"]

    on_a_fleet(test, "n1")


@pytest.mark.certifies(21, 30)
def test_a_nudge_that_nobody_hears_costs_a_look():
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        assert two.node.reconcile._nudges is not None
        await two.node.reconcile._nudges.close()
        await one.one("apply", text=SECOND)
        assert await revision_of(one) == 2, "whoever is asked works by it when it answers"
        await asyncio.sleep(1)
        assert await revision_of(two) == 1
        await all_at(fleet, 2, LONGEST_LOOK_S)
        kept = [topic for topic, _ in await one.node.broker.recent(topics.CONFIG, 100)]
        assert set(kept) == {
            topics.config("revision_activated"),
            topics.config("revision_applied"),
        }

    on_a_fleet(test, "n1", "n2")


LOOKUP = "integrations: {jira: {secret: '${PATH}', lookup: 'no_such_lookup:find'}}\n"

BROKEN = [
    ("name: Company T\nroles: [{name: Dev, hadnle: dev}]", "did you mean 'handle'"),
    ("name: Company T\nroles: [", "company.yaml:2:9"),
    (text(DEV, head=HEAD + "handler: {command: [./no-such-program]}\n"), "no-such-program"),
    (text(DEV, head=HEAD + "handler: {python: 'no.such:thing'}\n"), "no.such:thing"),
    (
        text(DEV, head=HEAD + "integrations: {github: {secret: '${NOT_SET_HERE}'}}\n"),
        "NOT_SET_HERE",
    ),
    (text(DEV, head=HEAD + LOOKUP), "no_such_lookup"),
    (text(DEV).replace("Company T", "Company U"), "ids of agents derive from the name"),
    ("", "empty"),
]


@pytest.mark.certifies(123)
@pytest.mark.parametrize(("file", "said"), BROKEN)
def test_an_invalid_revision_changes_nothing_and_says_why(file: str, said: str):
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        before = (one.node.company, one.node.hands)
        written = await one.node.broker.store.list(CONFIG)
        for verb in ("apply", "revision.try"):
            with pytest.raises((ConfigError, Refused), match=re.escape(said)):
                await one.ask(verb, text=file)
        await asyncio.sleep(LONGEST_LOOK_S)
        assert (one.node.company, one.node.hands) == before
        assert await one.node.broker.store.list(CONFIG) == written
        assert await revision_of(two) == 1

    on_a_fleet(test, "n1", "n2", handler=None)


def test_a_trial_says_what_would_change_and_changes_nothing():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        answer = await one.one("revision.try", text=SECOND)
        assert (answer["revision"], answer["changed"], answer["added"]) == (2, False, ["qa"])
        assert len(await one.ask("revision.ls")) == 1
        assert await one.recorded("operator_acted") == []

    on_a_fleet(test, "n1")


@pytest.mark.certifies(108)
def test_the_knobs_of_collection_follow_without_a_new_subscription():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await fleet.owned("dev")
        attached = attachments(one)
        knobs = HEAD + "notification_coalesce_window_seconds: 10\n"
        await one.one("apply", text=text(DEV, OPS, head=knobs))
        began = asyncio.get_running_loop().time()
        await one.node.send("dev", "first")
        while not fleet.worked:
            await asyncio.sleep(0.1)
        assert 10 <= asyncio.get_running_loop().time() - began < 11
        await one.one("apply", text=FIRST)
        began = asyncio.get_running_loop().time()
        await one.node.send("dev", "second")
        while len(fleet.worked) < 2:
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - began < 1
        assert attachments(one) == attached

    on_a_fleet(test, "n1")


def attachments(node: Operated) -> set[int]:
    """Each has a number of its own, on this broker."""
    assert isinstance(node.node.broker, MemoryClient)
    return set(node.node.broker._attachments)


async def inbox_of(node: Operated, handle: str) -> BoxState:
    described = await node.node.runtime.describe(handle)
    assert described is not None
    return next(box for box in described.boxes if box.box == INBOX)


@pytest.mark.certifies(145)
def test_the_revision_that_brings_a_handler_lifts_the_hold_and_the_mail_is_worked():
    given = HEAD + f"handler: {{python: '{__name__}:worked'}}\n"

    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await fleet.owned("dev", "ops")
        for n in range(3):
            await one.node.send("dev", f"task {n}")
        await asyncio.sleep(60)
        assert (await one.ask("why", handle="dev"))[0]["code"] == "no_handler"
        await one.one("apply", text=text(DEV, OPS, head=given))
        await asyncio.sleep(5)
        ended = await one.recorded("agent_turn_completed")
        assert [each.value("answer", str, "") for each in ended] == [
            f"worked task {n}" for n in range(3)
        ]
        # And the other way round: the next message finds nobody, and waits.
        await one.one("apply", text=FIRST)
        await one.node.send("dev", "too late")
        await asyncio.sleep(60)
        assert len(await one.recorded("agent_turn_completed")) == 3
        assert NO_HANDLER in (await inbox_of(one, "dev")).holds

    on_a_fleet(test, "n1", handler=None)


@pytest.mark.certifies(124, 126)
def test_an_agent_that_becomes_a_person_gets_no_more_mail_and_the_other_way_round():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await one.one("apply", text=text(DEV, OPS.replace("ops,", "ops, kind: human,")))
        await assigned(one, "octo-ops", 1)
        await asyncio.sleep(5)
        assert fleet.worked == []
        assert (await one.refused("send", handle="ops", text="x")).code == "node_refused"
        await one.one("apply", text=FIRST)
        await assigned(one, "octo-ops", 2)
        await asyncio.sleep(10)
        assert [seat for _, seat, _ in fleet.worked] == ["ops"]

    on_a_fleet(test, "n1")


def test_a_seat_that_is_removed_in_its_turn_is_let_go_of_when_that_has_ended():
    release = asyncio.Event()

    async def slow(turn: Turn) -> str:
        await release.wait()
        return "done"

    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await fleet.owned("ops")
        await one.node.send("ops", "a long one")
        await asyncio.sleep(1)
        await one.one("apply", text=SECOND)
        await asyncio.sleep(30)
        assert one.node.fleet.owner_of("ops") == "n1", "its turn runs"
        release.set()
        await asyncio.sleep(5)
        assert one.node.fleet.owner_of("ops") is None
        (ended,) = await one.recorded("agent_turn_completed")
        assert ended.value("outcome", str, "") == "ack"
        (state,) = await one.node.broker.list(topics.inbox("ops"))
        assert (state.waiting, state.in_flight) == (0, 0)

    on_a_fleet(test, "n1", handler=slow)


# -- a node that cannot -------------------------------------------------------------------


def test_a_node_that_cannot_work_by_it_goes_on_as_it_was_says_so_and_is_tried_again(
    tmp_path: Path,
):
    able, unable = tmp_path / "able", tmp_path / "unable"
    for folder in (able, unable):
        folder.mkdir()
    program(able)
    later = text(DEV, QA, head=HEAD + "handler: {command: [./work]}\n")

    async def test(fleet: Fleet) -> None:
        one = await fleet.add("n1", folder=able)
        two = await fleet.add("n2", folder=unable)
        await one.one("apply", text=later)
        await asyncio.sleep(1)
        assert (await revision_of(one), await revision_of(two)) == (2, 1)
        assert two.node.company.seat("qa") is None
        assert {row["id"]: row["behind"][:16] for row in await one.ask("node.ls")} == {
            "n1": "",
            "n2": "behind at revisi",
        }
        await asyncio.sleep(3 * LONGEST_LOOK_S)
        (row,) = [row for row in await one.ask("node.ls") if row["id"] == "n2"]
        assert (
            row["behind"].startswith("stuck at revision 2: ")
            and "work is not an exec" in row["behind"]
        )
        told = await one.recorded("config_revision_applied")
        said = sorted((each.node, each.value("tries", int, 0)) for each in told)
        assert said == [("n1", 0), ("n2", 1), ("n2", 2), ("n2", 3)]
        why = await two.ask("why", handle="dev") + await two.ask("why", handle="ops")
        assert "behind" in {row["code"] for row in why}
        program(unable)
        await asyncio.sleep(10 * LONGEST_LOOK_S)
        assert await revision_of(two) == 1, "it is stuck until somebody asks again"
        assert (await one.one("apply", text=later))["changed"] is False
        await all_at(fleet, 2)
        assert two.node.company.seat("qa") is not None

    on_a_fleet(test, handler=None)


def program(folder: Path) -> None:
    (folder / "work").write_text("#!/bin/sh\n")
    (folder / "work").chmod(0o755)


def test_a_store_that_does_not_answer_changes_nothing_and_costs_no_try():
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        await one.one("apply", text=SECOND)
        await all_at(fleet, 2)
        fleet.broker.shelves.down = True
        with pytest.raises(Exception, match="does not answer"):
            await one.ask("apply", text=FIRST)
        await asyncio.sleep(10 * LOOK_S)
        assert two.node.reconcile.standing.state == "applied"
        assert await revision_of(two) == 2
        fleet.broker.shelves.down = False
        await one.one("apply", text=FIRST)
        await all_at(fleet, 3)

    on_a_fleet(test, "n1", "n2")


def test_of_two_who_apply_at_once_one_is_told_that_the_other_was_first():
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        rows = await asyncio.gather(
            one.ask("apply", text=SECOND),
            two.ask("apply", text=text(DEV, OPS, QA)),
            return_exceptions=True,
        )
        (lost,) = [row for row in rows if isinstance(row, Exception)]
        assert "somebody applied another revision meanwhile" in str(lost)
        await all_at(fleet, 2)
        assert one.node.company.seats == two.node.company.seats

    on_a_fleet(test, "n1", "n2")


# -- starting -----------------------------------------------------------------------------


def test_a_node_that_starts_takes_the_stored_revision_over_its_file_unless_told():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await one.one("apply", text=SECOND)
        two = await fleet.add("n2", FIRST)
        assert [seat.handle for seat in two.node.company.agents()] == ["dev", "qa"]
        assert "revision 2 is active, which ann applied" in two.node.reconcile.notice
        assert "crewlet up --apply" in two.node.reconcile.notice
        three = await fleet.add("n3", text(DEV, OPS, QA), apply=True)
        assert three.node.reconcile.notice == ""
        await all_at(fleet, 3)
        assert two.node.company.seat("ops") is not None

    on_a_fleet(test, "n1")


def test_a_broker_of_another_company_is_refused():
    async def test(fleet: Fleet) -> None:
        with pytest.raises(NodeRefused, match="where the company 'Company T' lives"):
            await fleet.add("n2", FIRST.replace("Company T", "Company U"))

    on_a_fleet(test, "n1")


def test_a_node_that_cannot_work_by_the_active_revision_does_not_start(tmp_path: Path):
    program(tmp_path)

    async def test(fleet: Fleet) -> None:
        file = text(DEV, head=HEAD + "handler: {command: [./work]}\n")
        await fleet.add("n1", file, folder=tmp_path)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        with pytest.raises(NodeRefused, match="revision 1 of Company T is active"):
            await fleet.add("n2", FIRST, folder=elsewhere)

    on_a_fleet(test, handler=None)


def test_revisions_are_listed_shown_and_told_apart():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await one.one("apply", text=SECOND)
        rows = await one.ask("revision.ls")
        assert [(row["revision"], row["active"], row["by"]) for row in rows] == [
            (2, True, "ann"),
            (1, False, "n1"),
        ]
        assert (await one.one("revision.show", number=1))["text"] == FIRST
        assert (await one.one("revision.show"))["text"] == SECOND
        last = await one.one("revision.diff")
        assert (last["old"], last["new"], last["removed"]) == (1, 2, ["ops"])
        assert "-" + OPS.rstrip() in last["text"] and "+" + QA.rstrip() in last["text"]
        assert (await one.one("revision.diff", old=2, new=1))["added"] == ["ops"]
        assert (await one.refused("revision.show", number=9)).code == "not_found"
        first = await one.refused("revision.diff", new=1)
        assert (first.code, "no revision before 1 is kept" in first.message) == ("not_found", True)

    on_a_fleet(test, "n1")
