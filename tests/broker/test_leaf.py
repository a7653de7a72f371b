"""A leaf: a server that keeps nothing and carries what its node says to the members, and back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from actors.delivery import HandBack
from actors.ports import Unavailable
from crewlet.broker import opening, server_files
from crewlet.coordination.store import LEASES, Conflict
from tests.broker.cluster import SECRET, answered
from tests.broker.leaves import LEAF_SECRET, Hub, hub_with
from tests.broker.real import bodies, box, done, send, until
from tests.broker.servers import Proxy


async def _echo(question: bytes) -> bytes:
    return question + b"!"


@pytest.mark.certifies(10)
def test_a_leaf_works_what_the_members_keep_and_keeps_nothing(tmp_path: Path) -> None:
    """Mail both ways, the store with its conditions, questions both ways, all events."""

    async def play() -> None:
        async with hub_with(tmp_path, "edge") as (_, (member, leaf)):
            mailbox = box("both")
            assert await leaf.ensure(mailbox) is True
            assert await member.ensure(mailbox) is False
            await send(member, mailbox, "a", "b")
            attachment = await leaf.attach(mailbox, 1)
            taken = list(await leaf.fetch(attachment, 5, 10.0))
            assert bodies(taken) == ["a", "b"]
            await leaf.settle([(taken[0], HandBack()), *done(taken[1:])])
            assert bodies(list(await leaf.fetch(attachment, 5, 10.0))) == ["a"]

            revision = await leaf.store.create(LEASES, "seat.x", b"leaf")
            with pytest.raises(Conflict):
                await member.store.create(LEASES, "seat.x", b"member")
            await member.store.update(LEASES, "seat.x", b"member", revision)
            with pytest.raises(Conflict):
                await leaf.store.update(LEASES, "seat.x", b"late", revision)

            for server, asker in ((leaf, member), (member, leaf)):
                served = await server.serve("crewlet.ask.x", _echo)
                came: Sequence[bytes] = ()
                async with asyncio.timeout(10):  # that somebody listens goes round by itself
                    while not came:
                        came = await asker.ask("crewlet.ask.x", b"?", wanted=1, within_s=5.0)
                assert list(came) == [b"?!"]
                await served.close()
        kept = {path.name for path in (tmp_path / "edge").rglob("*") if path.is_file()}
        assert kept <= {"lock", "nats-server.log", "nats-server.out"}

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(5, 10)
def test_both_listen_on_the_loopback_and_the_secret_is_nowhere(tmp_path: Path) -> None:
    async def play() -> None:
        async with hub_with(tmp_path, "edge") as (hub, (_, leaf)):
            assert isinstance(leaf, opening.LeafBroker)
            for pid in (hub.server.pid, leaf.server_pid):
                assert pid is not None
                process = psutil.Process(pid)
                said = " ".join(process.cmdline()) + " ".join(process.environ().values())
                assert LEAF_SECRET not in said and SECRET not in said
                listening = [
                    one.laddr.ip
                    for one in process.net_connections("inet")
                    if one.status == psutil.CONN_LISTEN
                ]
                assert set(listening) == {"127.0.0.1"}
            for path in tmp_path.rglob("*"):
                if path.is_file():
                    held = path.read_bytes()
                    assert LEAF_SECRET.encode() not in held, path
                    assert path.stat().st_mode & 0o077 == 0, path

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(10, 35)
@pytest.mark.parametrize("fenced", [0, 1], ids=["member", "leaf"])
def test_mail_that_comes_to_an_abandoned_pull_is_its_successor_s_at_once(
    tmp_path: Path, fenced: int
) -> None:
    """Whoever shares a member with leaves: the server goes on giving to a pull that is young. The
    successor has looked already at what was out, and holds the mailbox alone."""

    async def play() -> None:
        async with hub_with(tmp_path, "edge") as (_, clients):
            mailbox, old, new = box("mine"), clients[fenced], clients[1 - fenced]
            await old.ensure(mailbox)
            before = await old.attach(mailbox, 1)
            parked = asyncio.create_task(old.fetch(before, 5, 60.0))
            await asyncio.sleep(0.3)
            leaving = asyncio.create_task(old.abandon(before))
            after = await new.attach(mailbox, 2)
            await new.reclaim(mailbox)
            await send(new, mailbox, "a", "b")
            came = list(await new.fetch(after, 5, 1.5))
            came += list(await new.fetch(after, 5, 1.0)) if len(came) < 2 else []
            # What was turned away comes again, and may come behind what was not given away.
            assert sorted(bodies(came)) == ["a", "b"]
            await leaving
            assert list(await parked) == []

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(10)
def test_a_leaf_goes_on_when_its_own_server_is_killed(tmp_path: Path) -> None:
    """What is parked there is parked anew; what was in hand is still in hand."""

    async def play() -> None:
        async with hub_with(tmp_path, "edge") as (hub, (member, leaf)):
            assert isinstance(leaf, opening.LeafBroker)
            mailbox = box("mine")
            await leaf.ensure(mailbox)
            await send(member, mailbox, "held")
            attachment = await leaf.attach(mailbox, 1)
            held = list(await leaf.fetch(attachment, 5, 10.0))
            parked = asyncio.create_task(leaf.fetch(attachment, 5, 60.0))
            await asyncio.sleep(0.3)
            await hub.kill(leaf._server)
            await send(member, mailbox, "meanwhile")
            assert bodies(list(await parked)) == ["meanwhile"]
            await answered(lambda: leaf.settle(done(held)))
            assert bodies(list(await leaf.fetch(attachment, 5, 0.3))) == []

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(10)
def test_a_member_that_is_killed_is_a_broken_connection_to_its_leaves(tmp_path: Path) -> None:
    """While it is away nobody is asked and nothing is said to be stored; then all goes on."""

    async def play() -> None:
        async with hub_with(tmp_path, "edge") as (hub, (_, leaf)):
            mailbox = box("mine")
            await leaf.ensure(mailbox)
            attachment = await leaf.attach(mailbox, 1)
            parked = asyncio.create_task(leaf.fetch(attachment, 5, 60.0))
            await asyncio.sleep(0.3)
            assert leaf.connected
            pid = hub.server.pid
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)  # its supervisor waits for its end
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not leaf.connected)
            with pytest.raises(Unavailable):
                await leaf.ask("crewlet.ask.x", b"?", wanted=1, within_s=5.0)
            await answered(lambda: leaf.publish(mailbox.topic, b"a", message_id="mine/a"))
            assert bodies(list(await parked)) == ["a"]
            assert leaf.connected

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(10)
def test_a_link_that_breaks_strands_nothing(tmp_path: Path) -> None:
    """Both servers live. What was handed out into the broken connection comes again at once, not
    when its ack window of half an hour ends."""

    async def play() -> None:
        async with hub_with(tmp_path) as (hub, (member,)):
            proxy = Proxy(f"nats://127.0.0.1:{hub.leaf_port}")
            port = int((await proxy.start()).rpartition(":")[2])
            leaf = await hub.leaf("edge", port=port)
            try:
                mailbox = box("mine")
                await leaf.ensure(mailbox)
                attachment = await leaf.attach(mailbox, 1)
                for number in range(5):
                    parked = asyncio.create_task(leaf.fetch(attachment, 5, 60.0))
                    await asyncio.sleep(0.1 * number)
                    proxy.hold()
                    await send(member, mailbox, str(number))  # given to a leaf that hears nothing
                    proxy.cut()
                    proxy.let_go()
                    began = time.monotonic()
                    taken = list(await parked)
                    assert bodies(taken) == [str(number)]
                    assert time.monotonic() - began < 10
                    await leaf.settle(done(taken))
            finally:
                await leaf.stop()
                await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 90))


@pytest.mark.certifies(10)
@pytest.mark.parametrize("secret", [SECRET, "not-what-the-members-know"])
def test_a_stranger_is_no_leaf_and_is_told_why(
    tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is whoever knows the members' own secret only."""
    monkeypatch.setattr(opening, "CLUSTER_S", 3.0)

    async def play() -> None:
        async with hub_with(tmp_path) as (hub, _):
            with pytest.raises(Unavailable, match="Authorization Violation") as refused:
                await hub.leaf("stranger", secret=secret)
            assert secret not in str(refused.value)

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(10)
def test_a_leaf_without_members_says_whom_it_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "CLUSTER_S", 3.0)

    async def play() -> None:
        hub = Hub(tmp_path)
        with pytest.raises(Unavailable, match=rf"127\.0\.0\.1:{hub.leaf_port}.*refused"):
            await hub.leaf("edge")
        assert not (tmp_path / "edge" / "broker" / server_files.CONFIG).exists()

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(9, 10)
def test_a_member_that_begins_to_take_leaves_keeps_its_mail(tmp_path: Path) -> None:
    """Its streams were made under no domain."""

    async def play() -> None:
        hub, mailbox = Hub(tmp_path, leaves=False), box("old")
        await hub.server.start()
        member = hub.client()
        await member.start()
        await member.ensure(mailbox)
        await send(member, mailbox, "a")
        revision = await member.store.create(LEASES, "seat.x", b"1")
        await member.stop()
        await hub.server.stop()
        hub.server = hub.made(leaves=True)
        await hub.server.start()
        leaf = await hub.leaf("edge")
        try:
            attachment = await leaf.attach(mailbox, 1)
            assert bodies(list(await leaf.fetch(attachment, 5, 10.0))) == ["a"]
            await leaf.store.update(LEASES, "seat.x", b"2", revision)
        finally:
            await leaf.stop()
            await hub.server.stop()

    asyncio.run(asyncio.wait_for(play(), 60))
