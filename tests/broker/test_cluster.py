"""Embedded brokers of three nodes form one: nothing acknowledged is lost when its leader dies."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import structlog

from actors.delivery import HandBack
from actors.ports import Unavailable
from crewlet.broker import names, patience, server_files
from crewlet.broker.cluster import ClusterSettings, membership
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.opening import open_broker
from crewlet.broker.server_config import Plan, configuration
from crewlet.broker.settings import StreamSettings
from crewlet.coordination.store import CLAIMS, LEASES, Conflict
from crewlet.errors import BrokerRefused, ConfigError, StoreUnavailable
from tests.broker.cluster import SECRET, Cluster, answered, client_of, free_ports, stop_all
from tests.broker.real import bodies, box, done, eventually, freeze, send, serving, until

MESSAGES = 200
WRITES = 40

STOPPED_S = 16.0
"""Two pings of 5 s that were not answered, and the third that finds it."""


@pytest.fixture(scope="module")
def cluster(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    runner.run(cluster.start())
    yield cluster
    runner.run(cluster.stop())


@pytest.mark.certifies(9)
def test_three_members_hold_what_one_is_told(runner: asyncio.Runner, cluster: Cluster) -> None:
    async def play() -> None:
        clients = [cluster.client(at) for at in range(3)]
        await asyncio.gather(*(client.start() for client in clients))
        try:
            mailbox = box("three")
            assert await clients[0].ensure(mailbox) is True
            assert await clients[1].ensure(mailbox) is False
            info = await clients[2]._mailboxes.info(mailbox)
            assert info is not None and not info["config"].get("mem_storage")
            assert len(info["cluster"]["replicas"]) == 2
            for stream in (names.AGENT, names.bucket(CLAIMS.name), names.bucket(LEASES.log)):
                config = (await clients[0]._api.call(f"STREAM.INFO.{stream}"))["config"]
                assert (config["num_replicas"], config["storage"]) == (3, "file"), stream
            await clients[1].publish(mailbox.topic, b"a", message_id="three/a")
            attachment = await clients[2].attach(mailbox, 1)
            taken = list(await clients[2].fetch(attachment, 5, 10.0))
            assert bodies(taken) == ["a"]
            await clients[2].settle(done(taken))
        finally:
            await stop_all(clients)

    runner.run(play())


@pytest.mark.certifies(9, 34, 39)
def test_a_pull_of_one_brings_one_and_the_head_is_kept(
    runner: asyncio.Runner, cluster: Cluster
) -> None:
    """With replicas the status that ends a pull overtakes the message that it was given."""

    async def play() -> None:
        client = cluster.client(0)
        await client.start()
        try:
            for number in range(5):
                mailbox = box(f"one-{number}")
                await client.ensure(mailbox)
                attachment = await client.attach(mailbox, 1)
                await send(client, mailbox, "a", "b", "c")
                for count in range(1, 9):
                    (one,) = await client.fetch(attachment, 1, 10.0)
                    assert (one.body, one.count) == (b"a", count)
                    await client.settle([(one, HandBack())])
                assert bodies(list(await client.fetch(attachment, 2, 10.0))) == ["a", "b"]
        finally:
            await client.stop()

    runner.run(play())


@pytest.mark.certifies(9, 48)
def test_a_publish_survives_the_death_of_the_leader(
    runner: asyncio.Runner, cluster: Cluster
) -> None:
    """Retried under its id until it is known, each message is there once, whichever was."""

    mailbox = box("survives")

    async def publish(client: JetStreamBroker, number: int) -> None:
        body, id = b"%03d" % number, f"survives/{number}"
        await answered(lambda: client.publish(mailbox.topic, body, message_id=id))

    async def play() -> None:
        client = cluster.client(0)
        await client.start()
        await client.ensure(mailbox)
        leader = await cluster.leader_of(client, names.AGENT)
        writer = cluster.client((leader + 1) % 3)
        await writer.start()
        try:
            work = [asyncio.create_task(publish(writer, n)) for n in range(MESSAGES // 2)]
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            cluster.kill(leader)
            work += [
                asyncio.create_task(publish(writer, n)) for n in range(MESSAGES // 2, MESSAGES)
            ]
            async with asyncio.timeout(40):
                await asyncio.gather(*work)
            attachment = await answered(lambda: writer.attach(mailbox, 1))
            seen: dict[int, str] = {}  # by position: an ack may be lost, and the message come again
            async with asyncio.timeout(60):
                while len(seen) < MESSAGES:
                    taken = list(await answered(lambda: writer.fetch(attachment, 100, 2.0)))
                    seen |= {one.position: one.body.decode() for one in taken}
                    await writer.settle(done(taken))
                    if not taken:  # what a leader gave out and died with is nobody's
                        await answered(lambda: writer.reclaim(mailbox))
            for one in await answered(lambda: writer.fetch(attachment, 5, 0.3)):
                assert one.position in seen
            assert sorted(seen.values()) == [f"{n:03}" for n in range(MESSAGES)]
        finally:
            await stop_all([client, writer])

    runner.run(play())


@pytest.mark.certifies(9)
def test_a_parked_pull_goes_on_when_the_leader_of_its_mailbox_dies(
    runner: asyncio.Runner, cluster: Cluster
) -> None:
    """Whether or not the pull outlived its leader, mail that comes later is there at once."""

    async def play() -> None:
        mailbox, first = box("parked"), cluster.client(0)
        await first.start()
        await first.ensure(mailbox)
        info = await first._mailboxes.info(mailbox)
        assert info is not None
        leader = int(info["cluster"]["leader"].removeprefix("node-")) - 1
        reader = cluster.client((leader + 1) % 3)
        await reader.start()
        try:
            attachment = await reader.attach(mailbox, 1)
            await send(reader, mailbox, "early")  # the first pull may end soon by itself
            await reader.settle(done(list(await reader.fetch(attachment, 1, 10.0))))
            fetch = asyncio.create_task(reader.fetch(attachment, 5, 60.0))
            await asyncio.sleep(0.5)  # it is parked at the leader
            cluster.kill(leader)
            async with asyncio.timeout(20):
                await answered(
                    lambda: reader.publish(mailbox.topic, b"later", message_id="parked/1")
                )
                began = asyncio.get_running_loop().time()
                assert bodies(list(await fetch)) == ["later"]
            assert asyncio.get_running_loop().time() - began < 10
        finally:
            await stop_all([first, reader])

    runner.run(play())


@pytest.mark.certifies(9)
def test_a_store_decides_or_does_not_know_and_is_never_wrong(
    runner: asyncio.Runner, cluster: Cluster
) -> None:
    async def play() -> None:
        client = cluster.client(0)
        await client.start()
        leader = await cluster.leader_of(client, names.bucket(LEASES.log))
        writer = cluster.client((leader + 1) % 3)
        await writer.start()
        yes, unknown = set[str](), set[str]()

        async def write(key: str) -> None:
            try:
                await writer.store.create(LEASES, key, key.encode())
            except StoreUnavailable:
                unknown.add(key)
            else:
                yes.add(key)

        try:
            keys = [f"seat.{number}" for number in range(WRITES)]
            work = []
            for at, key in enumerate(keys):
                work.append(asyncio.create_task(write(key)))
                if at == WRITES // 4:
                    cluster.kill(leader)
                await asyncio.sleep(0.02)
            await asyncio.gather(*work)
            assert yes, "nothing was decided at all"

            async def answers() -> bool:
                try:
                    return bool(await writer.store.list(LEASES, "seat."))
                except StoreUnavailable:
                    return False

            await eventually(answers, 30.0)
            await writer.store.put(LEASES, "seat.last", b"")  # behind all that is on its way
            there = {entry.key: entry for entry in await writer.store.list(LEASES, "seat.")}
            assert yes <= there.keys() <= yes | unknown | {"seat.last"}
            for key in yes:
                assert there[key].value == key.encode()
                with pytest.raises(Conflict):
                    await writer.store.create(LEASES, key, b"somebody else's")
        finally:
            await stop_all([client, writer])

    runner.run(play())


@pytest.mark.certifies(10)
def test_a_node_without_data_dials_the_members(
    runner: asyncio.Runner, cluster: Cluster, tmp_path: Path
) -> None:
    """And goes on when the one that it is connected to dies."""

    async def play() -> None:
        urls = [f"nats://crewlet-member:{SECRET}@127.0.0.1:{port}" for port in cluster.client_ports]
        settings = StreamSettings(type="nats", url=",".join(urls), replicas=3)
        broker = await open_broker(settings, node_id="edge", data_dir=tmp_path)
        try:
            mailbox = box("edge")
            await broker.ensure(mailbox)
            attachment = await broker.attach(mailbox, 1)
            cluster.kill(0)
            await answered(lambda: broker.publish(mailbox.topic, b"a", message_id="edge/a"))
            assert bodies(list(await broker.fetch(attachment, 5, 20.0))) == ["a"]
            assert list(tmp_path.iterdir()) == []
        finally:
            await broker.stop()

    runner.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(5, 9)
def test_the_secret_is_on_no_command_line_and_in_no_file(
    runner: asyncio.Runner, cluster: Cluster
) -> None:
    runner.run(until(lambda: all(server.ready for server in cluster.servers), 30.0))
    derived = membership(ClusterSettings(peers=("a:1",), secret=SECRET), "n").route_password
    for server in cluster.servers:
        assert server.pid is not None
        said = " ".join(psutil.Process(server.pid).cmdline())
        assert SECRET not in said and derived not in said
    for path in cluster.folder.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert SECRET.encode() not in held and derived.encode() not in held, path
    member = membership(ClusterSettings(peers=("a:1",), secret=SECRET), "n")
    assert SECRET not in repr(member) and SECRET not in repr(member.settings)


@pytest.mark.certifies(9)
def test_a_stranger_is_no_member(runner: asyncio.Runner, cluster: Cluster) -> None:
    """It has another secret: it hears of no leader, and says so in time."""

    async def play() -> None:
        (port,) = free_ports(1)
        stranger = cluster.other("node-4", port, "not-what-the-others-know")
        await stranger.start()
        try:
            with pytest.raises(Unavailable):
                await client_of(stranger, "node-4", patience_s=0.1).start()
        finally:
            await stranger.stop()

    runner.run(play())


@pytest.mark.certifies(9)
def test_a_namesake_is_no_member_and_its_node_is_told(
    runner: asyncio.Runner, cluster: Cluster, tmp_path: Path
) -> None:
    """A node file that was copied, its id with it."""

    async def play() -> None:
        (port,) = free_ports(1)
        settings = ClusterSettings(name="test", port=port, peers=cluster.peers, secret=SECRET)
        namesake = membership(settings, "node-1")
        server = EmbeddedServer(tmp_path / "copy", sync="interval", member=namesake)
        with structlog.testing.capture_logs() as said:
            await server.start()
            try:
                with pytest.raises(Unavailable):
                    await client_of(server, "node-1", patience_s=0.1).start()
                await until(lambda: any("duplicate name" in str(one.get("reason")) for one in said))
            finally:
                await server.stop()

    runner.run(play())


@pytest.mark.certifies(9)
def test_a_store_of_one_alone_is_no_member_s(tmp_path: Path) -> None:
    """The cluster would begin without what it keeps."""

    async def play() -> None:
        cluster = Cluster(tmp_path)
        async with serving(tmp_path / "node-1") as alone:
            client = alone.client()
            await client.start()
            await client.stop()
        with pytest.raises(BrokerRefused, match="store_dir"):
            await cluster.servers[0].start()

    asyncio.run(play())


def test_the_configuration_is_ours_alone(tmp_path: Path) -> None:
    server_files.prepare_folder(tmp_path)
    cluster = ClusterSettings(peers=("a:1", "b:1", "c:1"), secret=SECRET)
    member = membership(cluster, "node-1")
    server_files.write_config(tmp_path, configuration(Plan("u", "p", member=member), -1))
    path = tmp_path / server_files.CONFIG
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert 'host: "127.0.0.1"\nport: -1' in text, "clients of other machines were let in unasked"
    assert SECRET not in text and text.count(member.route_password) == 4
    assert "no_advertise: true" in text and 'server_name: "node-1"' in text
    assert 'ping_interval: "5s"\nping_max: 2' in text
    assert "leafnodes" not in text and "domain" not in text, "leaves were let in unasked"


@pytest.mark.parametrize(
    "secret", ["", "short", "with a space in it", 'a"quote-and-16-more', "é" * 20]
)
def test_a_secret_that_cannot_be_one_is_refused(secret: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(secret)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="openssl"):
        membership(ClusterSettings(secret_file=str(file)), "n")


def test_a_secret_may_come_from_a_file_that_is_ours(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o640)
    settings = ClusterSettings(secret_file=str(file))
    with pytest.raises(ConfigError, match="chmod 600"):
        membership(settings, "n")
    file.chmod(0o600)
    assert membership(settings, "n").secret == SECRET
    with pytest.raises(ConfigError, match="cannot be read"):
        membership(ClusterSettings(secret_file=str(tmp_path / "none")), "n")


def test_what_is_waited_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AGAIN_S", 0.001)
    monkeypatch.setattr(patience, "SAY_S", 0.004)
    said: list[str] = []
    monkeypatch.setattr(patience.log, "warning", lambda event, **_: said.append(event))
    tries = iter(range(30))

    async def work() -> None:
        if next(tries) < 20:
            raise Unavailable("no leader yet")

    async def hopeless() -> None:
        raise Unavailable("no leader ever")

    asyncio.run(patience.patiently(work, 10.0))
    assert said and set(said) == {"broker_waits_for_its_cluster"}
    with pytest.raises(Unavailable, match="ever"):
        asyncio.run(patience.patiently(hopeless, 0.0))


@pytest.mark.long
def test_the_pulls_of_a_stopped_client_swallow_nothing_for_long(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            await client.ensure(box())
            reader = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.broker.stopped_reader"),
                *(real.server.url, str(real.server.address.password)),
                stdout=asyncio.subprocess.PIPE,
            )
            try:
                assert reader.stdout is not None and b"ready" in await reader.stdout.readline()
                await asyncio.sleep(0.5)  # its pull is on its way
                await freeze(reader.pid)
                await asyncio.sleep(STOPPED_S)
                await client.publish(box().topic, b"x", message_id="x")
                await asyncio.sleep(0.5)
                (state,) = await client.list(box().topic)
                assert (state.waiting, state.in_flight) == (1, 0)
            finally:
                reader.kill()
                await reader.wait()
                await client.stop()

    asyncio.run(play())
