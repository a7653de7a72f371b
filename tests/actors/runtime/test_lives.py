"""A consumer that breaks: its next life knows its plan, and the mail of the former is back."""

from __future__ import annotations

import asyncio

import pytest
from runtime_bench import BOX, INBOX, NAME, Bench, play, read

from actors.delivery import BatchOptions, Delivery, HandBack, Letter
from actors.machines import signals
from actors.messages import ListInFlight
from actors.ports import Unavailable
from crewlet.broker.memory_mailbox import ACK_WINDOW_S

MANY = BatchOptions(max_batch=20, linger_s=30.0)


def breaks_once(bench: Bench, text: str, error: BaseException) -> None:
    """`read` lets an error escape the first time it sees this message."""
    errors = [error]

    def breaking(delivery: Delivery) -> Letter:
        if delivery.body.decode() == text and errors:
            raise errors.pop()
        return read(delivery)

    bench.read = breaking


@pytest.mark.certifies(67, 68)
def test_a_consumer_attached_by_hand_is_attached_again_with_its_own_handler() -> None:
    async def test(bench: Bench) -> None:
        breaks_once(bench, "a", RuntimeError("a bug"))
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(5)
        assert bench.actor().restarts == 1
        assert bench.seen == [("a", 2), ("b", 1)], "by its own handler"
        assert await bench.settled() and await bench.client.dead_letters(10) == []

    play(test)


def test_an_unreadable_message_that_breaks_its_reader_every_time_dies_in_the_end() -> None:
    async def test(bench: Bench) -> None:
        def breaking(delivery: Delivery) -> Letter:
            if delivery.body == b"bad":
                raise RuntimeError("a bug")
            return read(delivery)

        bench.read = breaking
        await bench.attach()
        await bench.send("bad", "good")
        await asyncio.sleep(1800)
        (letter,) = await bench.client.dead_letters(10)
        assert letter.body == b"bad" and letter.deliveries == 25
        assert [text for text, _ in bench.seen] == ["good"] and await bench.settled()

    play(test)


@pytest.mark.certifies(65, 136)
@pytest.mark.parametrize("brake", [signals.Hold("run"), signals.Pause(), signals.Quiesce()])
def test_brakes_outlive_the_incarnation_that_took_them(brake: signals.Brake) -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        await bench.runtime.brake(NAME, BOX, brake)
        bench.crash()
        await bench.send("a")
        await asyncio.sleep(600)
        assert bench.seen == [] and bench.actor().restarts == 1
        lifts = {
            signals.Hold("run"): signals.Lift("run"),
            signals.Quiesce(): signals.Unquiesce(),
        }
        if brake in lifts:
            before = await bench.runtime.brake(NAME, BOX, lifts[brake])
            assert before is not None and before.attached
            await asyncio.sleep(1)
            assert bench.seen == [("a", 1)]

    play(test)


@pytest.mark.certifies(136)
def test_a_lifted_hold_and_a_hold_of_a_detached_box_do_not_come_back_with_a_life() -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        for signal in (signals.Hold("a"), signals.Hold("b"), signals.Lift("a")):
            await bench.runtime.brake(NAME, BOX, signal)
        bench.crash()
        await asyncio.sleep(1)
        description = await bench.runtime.describe(NAME)
        assert description is not None and description.boxes[0].holds == ("b",)
        await bench.runtime.detach(NAME, BOX)
        bench.crash()
        await asyncio.sleep(1)
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        assert bench.seen == [("a", 1)]

    play(test)


@pytest.mark.certifies(67)
def test_a_detached_consumer_stays_detached() -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        await bench.runtime.detach(NAME, BOX)
        bench.crash()
        await bench.send("a")
        await asyncio.sleep(600)
        assert bench.seen == [] and bench.actor().restarts == 1
        assert await bench.mail() == (1, 0) and bench.client.calls.count("attach") == 1

    play(test)


@pytest.mark.certifies(50)
@pytest.mark.parametrize("outage_s", [1.0, 60.0])
def test_what_a_life_held_that_broke_in_an_outage_is_back_when_the_broker_is(
    outage_s: float,
) -> None:
    async def test(bench: Bench) -> None:
        bench.options = lambda: MANY
        await bench.attach()
        await bench.send("a", "b", "c")
        await asyncio.sleep(1)
        bench.broker.down = True
        bench.crash()
        await asyncio.sleep(outage_s)
        bench.options = BatchOptions
        bench.broker.down = False
        back = asyncio.get_running_loop().time()
        while len(bench.seen) < 3:
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - back < 15 < ACK_WINDOW_S
        assert bench.seen == [("a", 2), ("b", 2), ("c", 2)], "in order, at one delivery each"
        assert await bench.runtime._base.aask(bench.address("gateway"), ListInFlight(), 1) == ()

    play(test)


def test_a_running_handler_of_a_life_that_broke_is_ended_and_its_mail_is_worked_again() -> None:
    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        bench.crash()
        await asyncio.sleep(1)
        bench.gate.set()
        await asyncio.sleep(1)
        assert bench.seen == [("a", 1), ("a", 2), ("b", 2)] and await bench.settled()

    play(test)


def test_a_break_while_an_attach_is_under_way_is_followed_by_one_new_life() -> None:
    async def test(bench: Bench) -> None:
        bench.client.slow["attach"] = 3.0
        attaching = asyncio.create_task(bench.attach())
        await asyncio.sleep(1)
        bench.crash()
        await bench.send("a")
        await asyncio.sleep(60)
        assert bench.actor().restarts == 1
        assert bench.client.calls.count("attach") == 2
        assert bench.client.calls.count("release") == 1, "the first attachment is let go of"
        assert bench.seen == [("a", 1)]
        async with asyncio.timeout(1):
            await attaching

    play(test)


def test_a_break_while_a_detach_is_under_way_answers_it() -> None:
    async def test(bench: Bench) -> None:
        bench.options = lambda: MANY
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        bench.client.slow["settle"] = 0.5
        detaching = asyncio.create_task(bench.runtime.detach(NAME, BOX))
        await asyncio.sleep(0.2)
        bench.crash()
        async with asyncio.timeout(5):
            assert await detaching
        await asyncio.sleep(5)
        assert bench.seen == [] and await bench.successor() == [("a", 2)]

    play(test)


@pytest.mark.parametrize("tried_s", [17.0, 18.5, 20.0])
def test_a_dead_holders_mail_is_reclaimed_by_the_life_that_attaches_and_by_no_other(
    tried_s: float,
) -> None:
    """The first life's attach is still being tried when the second one's is."""

    async def test(bench: Bench) -> None:
        await bench.begin(router=True)
        dead = bench.broker.client("n0")
        await dead.start()
        await bench.send("a", "b")
        await dead.fetch(await dead.attach(INBOX, 0), 2, 0.0)
        dead.crash()
        await bench.send("c")
        bench.broker.down = True
        bench.gate.clear()
        starting = asyncio.create_task(bench.runtime.start())
        await asyncio.sleep(tried_s)
        await bench.runtime.describe("router")
        bench.crash("router")
        await asyncio.sleep(1)
        bench.broker.down = False
        await asyncio.wait_for(starting, 15)
        await asyncio.sleep(15)
        bench.gate.set()
        await asyncio.sleep(5)
        got = [("a", 2), ("b", 2), ("c", 1)]
        assert bench.seen == got, "reclaimed, and not out of a handler's hands"
        assert await bench.settled()

    play(test, started=False)


@pytest.mark.parametrize("after_s", [10.0, 600.0, 7200.0])
def test_a_consumer_that_breaks_again_and_again_is_never_removed(after_s: float) -> None:
    async def test(bench: Bench) -> None:
        broken = True

        def breaking(delivery: Delivery) -> Letter:
            if broken:
                raise RuntimeError("a bug")
            return read(delivery)

        bench.read = breaking
        await bench.attach()
        for text in ("a", "b", "c", "d", "e"):
            await bench.send(text)
        await asyncio.sleep(after_s)
        restarts = bench.actor().restarts
        assert {10.0: 3, 600.0: 20, 7200.0: 100}[after_s] <= restarts
        assert restarts < {10.0: 10, 600.0: 40, 7200.0: 600}[after_s], "later and later"
        broken = False
        await bench.send("z")
        await asyncio.sleep(40)
        assert bench.seen[-1] == ("z", 1) and await bench.settled()

    play(test)


@pytest.mark.parametrize("worked_s", [16.5, 18.5, 20.0])
def test_a_late_settlement_of_a_former_life_does_not_disturb_the_next(worked_s: float) -> None:
    """What a handler made of its mail is not overruled by the clearing of its life."""

    async def test(bench: Bench) -> None:
        await bench.attach()
        bench.gate.clear()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        bench.broker.down = True
        await asyncio.sleep(1)
        bench.gate.set()
        await asyncio.sleep(worked_s)  # it is done; the broker was not told
        bench.crash()
        await asyncio.sleep(1)
        bench.broker.down = False
        await asyncio.sleep(30)
        assert bench.seen == [("a", 1), ("b", 1)], "nothing is worked twice"
        await bench.send("c")
        await asyncio.sleep(1)
        assert bench.seen[-1] == ("c", 1) and await bench.settled()

    play(test)


def test_what_a_life_handed_back_is_not_handed_back_again_by_the_next() -> None:
    async def test(bench: Bench) -> None:
        bench.options = lambda: MANY
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        bench.client.slow["settle"] = 2.0
        told: list[int] = []
        settle = bench.client._settle

        def counted(delivery: Delivery, verdict: object) -> None:
            told.extend([delivery.position] if verdict == HandBack() else [])
            settle(delivery, verdict)  # type: ignore[arg-type]

        bench.client._settle = counted  # type: ignore[method-assign]
        await bench.runtime.brake(NAME, BOX, signals.Hold("run"))
        await asyncio.sleep(0.5)
        bench.crash()
        await asyncio.sleep(10)
        assert len(told) == 2
        assert await bench.successor() == [("a", 2), ("b", 2)]

    play(test)


def test_a_start_at_a_broker_that_never_answers_ends_in_the_brokers_own_error() -> None:
    async def test(bench: Bench) -> None:
        await bench.begin(router=True)
        bench.broker.down = True
        with pytest.raises(Unavailable, match="not all mailboxes were attached within 600 s"):
            await bench.runtime.start()

    play(test)
