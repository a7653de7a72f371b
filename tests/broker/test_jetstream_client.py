"""The client: what it answers when the broker does not, and what it keeps besides mail."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from actors.delivery import Dead, Delivery, Done, Mailbox
from actors.ports import NotLive, TooLarge, Unavailable
from crewlet import topics
from crewlet.broker import dead_letters
from crewlet.broker.dial import RECORD_BYTES, Address
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.opening import open_broker
from crewlet.broker.settings import StreamSettings
from tests.broker.real import Real, bodies, box, connected, eventually, send, serving, until
from tests.broker.servers import Proxy


async def _through(real: Real) -> tuple[Proxy, JetStreamBroker]:
    """A started client that reaches the server through a proxy."""
    proxy = Proxy(real.server.url)
    address = real.server.address
    client = JetStreamBroker(
        Address((await proxy.start(),), user=address.user, password=address.password)
    )
    await client.start()
    return proxy, client


@pytest.mark.certifies(43, 44)
def test_a_record_of_the_contract_s_size_passes_whole_even_as_a_dead_letter(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            body = bytes(range(256)) * (RECORD_BYTES // 256)
            await client.publish(box().topic, body, message_id="x" * 200)
            with pytest.raises(TooLarge, match=str(RECORD_BYTES)):
                await client.publish(box().topic, body + b"x", message_id="y")
            (delivery,) = await client.fetch(await client.attach(box(), 1), 5, 10.0)
            assert delivery.body == body
            reason = "line\r\nCrewlet-Topic: forged\x00" + "é" * 5000
            await client.settle([(delivery, Dead(reason))])
            await client.settle([(delivery, Dead(reason))])
            (letter,) = await client.dead_letters(10)
            assert letter.body == body
            assert letter.mailbox == box()
            assert letter.message_id == "x" * 200
            assert "\r" not in letter.reason and "\n" not in letter.reason
            assert len(letter.reason.encode()) <= dead_letters.REASON_BYTES
            assert letter.reason.startswith("line Crewlet-Topic: forged")

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(43)
def test_a_dead_letter_is_out_of_the_mailbox_only_when_it_is_stored(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            await send(client, box(), "a")
            (delivery,) = await client.fetch(await client.attach(box(), 1), 5, 5.0)
            await client._api.call("STREAM.DELETE.CREWLET_DLQ")
            with pytest.raises(Unavailable):
                await client._settler._dead_letters._api.ask(
                    topics.dead_letter(box()), b"", wait_s=0.1
                )
            settling = asyncio.create_task(client.settle([(delivery, Dead("reason"))]))
            (state,) = await client.list(box().topic)
            assert state.in_flight == 1
            await client._topology.provision()
            await settling
            (state,) = await client.list(box().topic)
            assert state.in_flight == 0
            assert len(await client.dead_letters(5)) == 1

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(43)
def test_letters_are_read_in_order_over_gaps_and_dropped_once(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            await send(client, box(), *(f"{at}" for at in range(12)))
            got = await client.fetch(await client.attach(box(), 1), 20, 5.0)
            await client.settle([(one, Dead(one.body.decode())) for one in got])
            letters = await client.dead_letters(100)
            assert [letter.reason for letter in letters] == [f"{at}" for at in reversed(range(12))]
            for letter in letters[1:9]:
                assert await client.drop_dead_letter(letter.id) is True
                assert await client.drop_dead_letter(letter.id) is False
                assert await client.dead_letter(letter.id) is None
            left = await client.dead_letters(3)
            assert [letter.reason for letter in left] == ["11", "2", "1"]
            for wrong in ("", "0", "-1", "x", "9" * 30, "1e3", "²"):
                assert await client.dead_letter(wrong) is None
                assert await client.drop_dead_letter(wrong) is False

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(20)
def test_recent_finds_the_newest_of_a_rare_type_among_many(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            for at in range(400):
                kind = "rare" if at in (3, 150, 151) else "common"
                await client.publish(
                    topics.event(kind), f"{at}".encode(), message_id=f"{kind}-{at}"
                )
            rare = await client.recent(topics.event("rare"), 2)
            assert [body for _, body in rare] == [b"150", b"151"]
            assert [b for _, b in await client.recent(topics.event("rare"), 50)] == [
                b"3",
                b"150",
                b"151",
            ]
            newest = await client.recent(topics.EVENTS, 7)
            assert [body for _, body in newest] == [f"{at}".encode() for at in range(393, 400)]
            assert len(await client.recent(topics.EVENTS, 1000)) == 400
            assert await client.recent(topics.event("never"), 5) == []
            assert await client.recent(topics.EVENTS, 0) == []
            assert (await client._api.call("STREAM.INFO.CREWLET_EVENTS"))["state"][
                "consumer_count"
            ] == 0

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(3)
def test_a_publish_that_was_cut_off_is_unknown_at_once_and_stored_once(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, client = await _through(real)
            await client.ensure(box())
            proxy.hold()
            publishing = asyncio.create_task(client.publish(box().topic, b"x", message_id="x"))
            await asyncio.sleep(0.01)
            began = time.monotonic()
            proxy.cut()
            with pytest.raises(Unavailable):
                await publishing
            assert time.monotonic() - began < 1.0
            proxy.let_go()
            await until(lambda: client.connected)
            await client.publish(box().topic, b"x", message_id="x")
            again = await client.publish(box().topic, b"x", message_id="x")
            assert again.duplicate
            (state,) = await client.list(box().topic)
            assert state.waiting == 1
            await client.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(3, 34)
def test_cuts_under_load_strand_nothing(tmp_path: Path) -> None:
    """The server lives, and has sent what never arrived: it is found and asked for again."""
    number = 800

    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, client = await _through(real)
            producer = real.client("p")
            await producer.start()
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            sending = asyncio.create_task(
                send(producer, box(), *(f"{at:04}" for at in range(number)))
            )
            taken: set[str] = set()
            cuts = 0
            while len(taken) < number:
                got = await client.fetch(attachment, 20, 2.0)
                taken |= set(bodies(list(got)))
                await client.settle([(one, Done()) for one in got])
                if len(taken) > 100 * (cuts + 1):
                    cuts += 1
                    proxy.cut()
            await sending
            assert cuts > 5

            async def settled() -> bool:
                await client.fetch(attachment, 20, 0.0)
                (state,) = await client.list(box().topic)
                return (state.waiting, state.in_flight) == (0, 0)

            await eventually(settled)
            await client.stop()
            await producer.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(3)
def test_an_error_of_the_server_that_ends_the_client_is_dialed_again(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, client = await _through(real)
            await client.ensure(box())
            heard: list[bytes] = []
            await client.subscribe(topics.AGENT, lambda _, body: heard.append(body))
            fetch = asyncio.create_task(client.fetch(await client.attach(box(), 1), 5, 20.0))
            before = proxy.connections
            proxy.say(b"-ERR 'Something Unforeseen'\r\n")
            await until(lambda: proxy.connections > before and client.connected)
            await client.publish(box().topic, b"x", message_id="x")
            assert bodies(list(await fetch)) == ["x"]
            await until(lambda: heard == [b"x"])
            await client.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_what_nobody_waits_for_any_more_is_not_sent_later(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, client = await _through(real)
            await client.ensure(box())
            proxy.hold()
            proxy.cut()
            await until(lambda: not client.connected)
            with pytest.raises(Unavailable):
                await client.publish(box().topic, b"late", message_id="late", within_s=0.2)
            proxy.let_go()
            await until(lambda: client.connected)
            (state,) = await client.list(box().topic)
            assert state.waiting == 0
            await client.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_stopping_while_the_broker_is_away_ends_in_time(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, client = await _through(real)
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            fetch = asyncio.create_task(client.fetch(attachment, 5, 20.0))
            publishing = asyncio.create_task(client.publish("crewlet.x.y", b"x", message_id="x"))
            proxy.hold()
            proxy.cut()
            await until(lambda: not client.connected)
            async with asyncio.timeout(8):
                await client.stop()
                await asyncio.wait({fetch, publishing})
            for task in (fetch, publishing):
                assert task.exception() is None or isinstance(
                    task.exception(), NotLive | Unavailable
                )
            with pytest.raises(NotLive):
                await client.publish("crewlet.x.y", b"x", message_id="x")
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(46)
def test_a_receipt_that_cannot_be_read_has_no_count(tmp_path: Path) -> None:
    from crewlet.broker import receipts

    assert receipts.read("$JS.ACK.S.C.3.17.9.1700000000.4") == receipts.Receipt(3, 17, 9)
    assert receipts.read("$JS.ACK.hub.acct.S.C.3.17.9.1700000000.4.rnd") == receipts.Receipt(
        3, 17, 9
    )
    for strange in ("$JS.ACK.S.C.x.17.9.1.4", "$JS.ACK.S.C", "$JS.ACK", ""):
        assert receipts.read(strange) is None


@pytest.mark.certifies(3, 8)
def test_the_same_settings_face_for_a_server_of_somebody_else(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            address = real.server.address
            url = real.server.url.replace("//", f"//{address.user}:{address.password}@")
            broker = await open_broker(
                StreamSettings(type="nats", url=url), node_id="n", data_dir=tmp_path
            )
            assert broker.connected
            await broker.ensure(box())
            await broker.stop()
            assert not broker.connected
            assert real.server.ready, "a client stopped the server of somebody else"

    asyncio.run(play())


def test_a_foreign_attachment_is_a_mistake(tmp_path: Path) -> None:
    class Other:
        mailbox = Mailbox("a.b", "g")
        epoch = 1

    async def play() -> None:
        async with connected(tmp_path) as client:
            with pytest.raises(TypeError):
                await client.fetch(Other(), 1, 0.0)

    asyncio.run(play())


def test_settling_for_a_mailbox_never_attached_is_told_all_the_same(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            holder, peer = real.client("a"), real.client("b")
            await holder.start()
            await peer.start()
            await holder.ensure(box())
            await send(holder, box(), "a")
            delivery: Delivery
            (delivery,) = await holder.fetch(await holder.attach(box(), 1), 1, 5.0)
            await peer.settle([(delivery, Done())])

            async def gone() -> bool:
                (state,) = await peer.list(box().topic)
                return state.in_flight == 0

            await eventually(gone)
            await holder.stop()
            await peer.stop()

    asyncio.run(play())
