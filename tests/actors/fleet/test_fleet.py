"""A fleet on the twin: seats are shared, moved, taken over, and never worked by two."""

from __future__ import annotations

import asyncio

import pytest

from actors.delivery import Ack, Outcome, Partition
from actors.machines.placement import Demand
from actors.runtime import IdTaken
from actors.system import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet


def test_one_node_takes_all_seats_and_works_their_mail() -> None:
    async def main() -> None:
        fleet = Fleet(5)
        await fleet.ready()
        runtime = await fleet.join("a")
        assert fleet.held() == {"a": fleet.handles}
        for handle in fleet.handles:
            await fleet.send(handle, f"hello {handle}")
        await asyncio.sleep(1)
        assert set(fleet.completed.values()) == {"a"} and len(fleet.completed) == 5
        drained = await runtime.drain(5)
        assert drained.stuck == ()
        assert fleet.held() == {}
        assert fleet.table.rows["node:a"].released
        await fleet.stop()

    run_virtual(main, seed=1)


@pytest.mark.certifies(272)
def test_a_node_that_joins_gets_its_share_two_a_sweep() -> None:
    async def main() -> None:
        fleet = Fleet(10)
        await fleet.ready()
        await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(TIMING.sweep_s * 4)
        counts = [len(seats) for seats in fleet.held().values()]
        assert counts == [5, 5]
        moved = [lease.resource for _, lease in fleet.table.grants if lease.node == "b"]
        assert len(moved) == 1 + 5  # its session, and each seat once
        await asyncio.sleep(TIMING.sweep_s * 10)
        assert len(fleet.table.grants) == 1 + 10 + 6  # nothing flaps
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_crash_is_taken_over_within_the_ttl_with_what_was_in_flight() -> None:
    async def main() -> None:
        started: list[tuple[float, str]] = []

        async def run(node: str, partition: Partition) -> Outcome:
            started.append((asyncio.get_running_loop().time(), node))
            if node == "a":
                await asyncio.sleep(3600)
            return Ack()

        fleet = Fleet(2, run)
        await fleet.ready()
        await fleet.join("a")
        await fleet.send("s0", "long")
        await asyncio.sleep(1)
        await fleet.join("b")
        await asyncio.sleep(0.1)
        crashed = asyncio.get_running_loop().time()
        await fleet.crash("a")
        await asyncio.sleep(TIMING.ttl_s + 1)
        assert fleet.held() == {"b": ["s0", "s1"]}
        assert [node for _, node in started] == ["a", "b"]
        assert started[1][0] - crashed < TIMING.ttl_s + 1
        assert fleet.completed == {"long": "b"}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_drained_node_hands_each_seat_over_as_its_turn_ends() -> None:
    async def main() -> None:
        async def run(node: str, partition: Partition) -> Outcome:
            await asyncio.sleep(4 if partition.key.startswith("long") else 0)
            return Ack()

        fleet = Fleet(4, run)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.send("s0", "long")
        await asyncio.sleep(0.5)
        await fleet.join("b")
        draining = asyncio.get_running_loop().time()
        drain = asyncio.create_task(a.drain(10))
        await asyncio.sleep(0.2)
        assert "s1" in fleet.held()["b"] and "s0" in fleet.held()["a"]
        drained = await drain
        assert drained.cut == () and drained.stuck == ()
        assert 3 < asyncio.get_running_loop().time() - draining < 5
        await asyncio.sleep(0.2)
        assert fleet.held() == {"b": fleet.handles}
        assert fleet.completed == {"long": "a"}
        await fleet.stop()

    run_virtual(main, seed=1)


@pytest.mark.certifies(272)
def test_a_node_that_is_cut_off_starts_nothing_and_says_nothing_once_its_session_is_over() -> None:
    async def main() -> None:
        async def run(node: str, partition: Partition) -> Outcome:
            await asyncio.sleep(30 if node == "a" else 0)
            return Ack()

        fleet = Fleet(1, run)
        await fleet.ready()
        await fleet.join("a")
        await fleet.send("s0", "one")
        await asyncio.sleep(1)
        fleet.doors["a"].shut = True
        await fleet.join("b")
        await asyncio.sleep(TIMING.ttl_s + 1)
        assert fleet.held() == {"b": ["s0"]}
        assert fleet.completed == {"one": "b"}
        await asyncio.sleep(30)
        assert fleet.completed == {"one": "b"}
        fleet.doors["a"].shut = False
        await asyncio.sleep(TIMING.sweep_s * 3)
        assert fleet.table.rows["node:a"].epoch == 2  # begun anew, never renewed
        await fleet.stop()

    run_virtual(main, seed=1)


def test_an_outage_shorter_than_the_validity_moves_no_seat() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        await fleet.ready()
        await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(30)
        before, grants = fleet.held(), len(fleet.table.grants)
        for door in fleet.doors.values():
            door.shut = True
        await asyncio.sleep(10)
        await fleet.send("s0", "meanwhile")
        await asyncio.sleep(1)
        assert fleet.completed == {}  # unconfirmed: nothing starts
        for door in fleet.doors.values():
            door.shut = False
        await asyncio.sleep(3)
        assert set(fleet.completed) == {"meanwhile"}
        assert fleet.held() == before and len(fleet.table.grants) == grants
        await fleet.stop()

    run_virtual(main, seed=1)


def test_an_operator_moves_a_seat_and_it_stays_there() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(30)
        handle = fleet.held()["a"][0]
        assert (await a.move(handle, "c")).refused != ""
        assert (await a.move(handle, "b")).refused == ""
        await asyncio.sleep(0.1)
        assert handle in fleet.held()["b"]
        await asyncio.sleep(30)
        assert handle in fleet.held()["b"]
        assert [len(seats) for seats in fleet.held().values()] == [2, 2]
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_seat_that_was_sent_somewhere_is_the_last_that_has_to_go_from_there() -> None:
    async def main() -> None:
        fleet = Fleet(8)
        await fleet.ready()
        a = await fleet.join("a")
        b = await fleet.join("b")
        await asyncio.sleep(30)
        assert fleet.held()["b"] == ["s0", "s1", "s2", "s3"]  # each given up by a, for b
        assert (await b.move("s0", "a")).refused == ""
        await asyncio.sleep(30)
        assert (await a.move("s0", "b")).refused == ""
        await asyncio.sleep(30)
        assert "s0" in fleet.held()["b"]
        assert [len(seats) for seats in fleet.held().values()] == [4, 4]
        await fleet.stop()

    run_virtual(main, seed=1)


@pytest.mark.certifies(134)
def test_a_seat_that_no_node_may_work_is_told_of_and_taken_when_one_comes() -> None:
    async def main() -> None:
        fleet = Fleet(2, demands={"s1": Demand(labels=(("gpu", "yes"),))})
        await fleet.ready()
        await fleet.join("a")
        await fleet.send("s1", "heavy")
        await asyncio.sleep(10)
        assert ("a", "seats_unplaceable", {"handles": ("s1",)}) in fleet.told
        await fleet.join("b", labels={"gpu": "yes"})
        await asyncio.sleep(1)
        assert fleet.completed == {"heavy": "b"}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_second_process_of_one_id_is_refused_while_the_first_lives() -> None:
    async def main() -> None:
        fleet = Fleet(1)
        await fleet.ready()
        await fleet.join("a")
        first = fleet.runtimes.pop("a")
        with pytest.raises(IdTaken, match="alive"):
            await fleet.join("a")
        fleet.runtimes["first"] = first
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_restart_under_the_same_id_waits_out_the_ttl_unless_its_seal_proves_the_death() -> None:
    async def main() -> None:
        fleet = Fleet(1)
        await fleet.ready()
        await fleet.join("a", seal="lock-1")
        await fleet.crash("a")
        began = asyncio.get_running_loop().time()
        await fleet.join("a", seal="lock-1")
        assert asyncio.get_running_loop().time() - began < 1
        assert fleet.held() == {"a": ["s0"]}
        await fleet.crash("a")
        began = asyncio.get_running_loop().time()
        await fleet.join("a", seal="another")
        assert 15 < asyncio.get_running_loop().time() - began < TIMING.ttl_s + 1
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_claim_whose_answer_was_lost_is_taken_up_again() -> None:
    async def main() -> None:
        fleet = Fleet(1)
        await fleet.ready()
        openings, fleet.openings = fleet.openings, []
        await fleet.join("a")
        fleet.openings = openings
        fleet.doors["a"].mute = True
        await asyncio.sleep(TIMING.sweep_s + 0.5)
        assert "seat:s0" in fleet.table.rows
        fleet.doors["a"].mute = False
        await asyncio.sleep(TIMING.sweep_s * 2)
        await fleet.send("s0", "hello")
        await asyncio.sleep(1)
        assert fleet.completed == {"hello": "a"}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_turn_that_will_not_end_is_cut_at_the_bound_and_its_mail_goes_to_the_next() -> None:
    async def main() -> None:
        async def run(node: str, partition: Partition) -> Outcome:
            if node == "a":
                for _ in range(20):
                    try:
                        await asyncio.sleep(1)
                    except asyncio.CancelledError:
                        continue
            return Ack()

        fleet = Fleet(1, run)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.send("s0", "one")
        await asyncio.sleep(1)
        drained = await a.drain(2)
        assert drained.cut == (("s0", "one"),) and drained.stuck == ()
        await fleet.join("b")
        await asyncio.sleep(1)
        assert fleet.completed == {"one": "b"}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_labels_changed_at_run_time_bring_and_take_seats() -> None:
    async def main() -> None:
        fleet = Fleet(2, demands={"s1": Demand(labels=(("gpu", "yes"),))})
        await fleet.ready()
        a = await fleet.join("a")
        assert fleet.held() == {"a": ["s0"]}
        a.relabel({"gpu": "yes"})
        await asyncio.sleep(1)
        assert fleet.held() == {"a": ["s0", "s1"]}
        assert fleet.table.rows["node:a"].about["label:gpu"] == "yes"
        a.relabel({})
        await asyncio.sleep(1)
        assert fleet.held() == {"a": ["s0"]}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_seat_that_one_node_cannot_establish_is_worked_by_another_and_stays_there() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        fleet.unpreparable = {("a", "s0"), ("a", "s1")}
        await fleet.ready()
        await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(TIMING.sweep_s * 4)
        assert fleet.held() == {"a": ["s2", "s3"], "b": ["s0", "s1"]}
        grants = len(fleet.table.grants)
        await asyncio.sleep(TIMING.ttl_s * 5)
        assert len(fleet.table.grants) == grants
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_fleet_whose_rows_are_deleted_begins_anew_with_epochs_that_go_on() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        await fleet.ready()
        await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(20)
        epochs = {row.resource: row.epoch for row in fleet.table.rows.values()}
        fleet.table.wipe()
        await fleet.send("s0", "meanwhile")
        await asyncio.sleep(TIMING.ttl_s - 1)
        assert fleet.held() == {}  # whoever held them may not know yet
        await asyncio.sleep(TIMING.sweep_s + 2)
        assert [len(seats) for seats in fleet.held().values()] == [2, 2]
        assert set(fleet.completed) == {"meanwhile"}
        for row in fleet.table.rows.values():
            assert row.epoch > epochs[row.resource], row
        await fleet.stop()

    run_virtual(main, seed=1)
