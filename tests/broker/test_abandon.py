"""A holder that was fenced says nothing more, also not what had waited for a connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from actors.delivery import Done, HandBack, Retry, Verdict
from crewlet.broker.dial import Address
from crewlet.broker.jetstream import JetStreamBroker
from tests.broker.real import Real, bodies, box, eventually, send, serving, until
from tests.broker.servers import Proxy


async def _behind(proxy: Proxy, real: Real) -> JetStreamBroker:
    """A client whose wire can be cut."""
    address = real.server.address
    client = JetStreamBroker(
        Address((await proxy.start(),), user=address.user, password=address.password)
    )
    await client.start()
    return client


@pytest.mark.certifies(280)
@pytest.mark.parametrize("verdict", [Done(), Retry(0.0)], ids=["done", "retry"])
@pytest.mark.parametrize("abandons", [True, False], ids=["abandoned", "held"])
def test_words_that_wait_for_a_connection_are_taken_back(
    tmp_path: Path, verdict: Verdict, abandons: bool
) -> None:
    """The control: whoever still holds the mailbox is heard when it is back."""

    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, peer = Proxy(real.server.url), real.client("peer")
            await peer.start()
            client = await _behind(proxy, real)
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            await send(client, box(), "a")
            (one,) = await client.fetch(attachment, 5, 5.0)
            proxy.hold()
            proxy.cut()
            await until(lambda: not client.connected)
            client.say([(one, verdict)])
            if abandons:
                await client.abandon(attachment)
            proxy.let_go()
            await until(lambda: client.connected)
            await client._wire.barrier(5.0)

            async def heard() -> bool:
                (state,) = await peer.list(box().topic)
                return (state.waiting, state.in_flight) == (0, int(abandons or verdict != Done()))

            await eventually(heard)
            heir = await peer.attach(box(), 2)
            back = await peer.fetch(heir, 5, 0.3)
            assert bodies(back) == ([] if abandons or verdict == Done() else ["a"])
            if abandons:
                assert await peer.reclaim(box()) == 1
                assert bodies(await peer.fetch(heir, 5, 5.0)) == ["a"]
            await client.stop()
            await peer.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 40))


@pytest.mark.certifies(280)
def test_a_hand_back_under_way_ends_with_the_abandon(tmp_path: Path) -> None:
    """The confirmation never came, because the connection had gone: nor does the word go now."""

    async def play() -> None:
        async with serving(tmp_path) as real:
            proxy, peer = Proxy(real.server.url), real.client("peer")
            await peer.start()
            client = await _behind(proxy, real)
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            await send(client, box(), "a")
            (one,) = await client.fetch(attachment, 5, 5.0)
            proxy.hold()
            proxy.cut()
            await until(lambda: not client.connected)
            settling = asyncio.create_task(client.settle([(one, HandBack())]))
            await asyncio.sleep(0)
            await client.abandon(attachment)
            settling.cancel()
            await asyncio.wait({settling})
            proxy.let_go()
            await until(lambda: client.connected)
            await client._wire.barrier(5.0)
            heir = await peer.attach(box(), 2)
            assert await peer.fetch(heir, 5, 0.3) == []
            assert await peer.outstanding(box()) == {one.position}
            await client.stop()
            await peer.stop()
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 40))
