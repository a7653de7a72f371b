"""Members, and leaves, that prove themselves by certificates of one authority."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog

from actors.ports import Unavailable
from crewlet.broker import opening
from crewlet.broker.cluster import ClusterSettings, membership
from crewlet.broker.leaf import LeafSettings, leaf_link
from crewlet.broker.peer_trouble import AGAIN_S, PeerTrouble, refusals
from crewlet.broker.server_log import LogTail
from crewlet.broker.tls import KEY
from crewlet.errors import ConfigError
from tests.broker.authority import Authority, needs_openssl
from tests.broker.cluster import SECRET, Cluster, answered, client_of
from tests.broker.leaves import LEAF_SECRET, Hub
from tests.broker.real import bodies, box, send, until

pytestmark = pytest.mark.certifies(9, 10)

LINES = """\
[1] 2026/11/30 22:39:52.1 [INF] 127.0.0.1:51807 - rid:55 - Router connection closed: TLS Failure
[1] 2026/11/30 22:39:52.2 [ERR] 10.0.0.3:42100 - rid:54 - TLS route handshake error: bad certificate
[1] 2026/11/30 22:39:52.3 [ERR] 10.0.0.3:42108 - rid:57 - TLS route handshake error: bad certificate
[1] 2026/11/30 22:39:52.4 [ERR] 10.0.0.9:33000 - lid:58 - authentication error - User "x"
[1] 2026/11/30 22:39:52.5 [ERR] 10.0.0.4:33000 - rid:59 - Remote server has a duplicate name: "n1"
"""


@needs_openssl
def test_members_of_one_authority_are_one_and_a_stranger_is_not_let_in(tmp_path: Path) -> None:
    """The third member's certificate is another authority's: said at both, until it has ours."""

    async def play() -> None:
        ours, other = Authority(tmp_path, "ours"), Authority(tmp_path, "other")
        strangers = {"node-3"}
        cluster = Cluster(
            tmp_path, lambda name: (other if name in strangers else ours).signed(name)
        )
        with structlog.testing.capture_logs() as said:
            await cluster.start()
            try:
                with pytest.raises(Unavailable):
                    await client_of(cluster.servers[2], "node-3", patience_s=0.1).start()

                def told() -> set[str]:
                    return {one["reason"] for one in said if one["event"] == "broker_peer_trouble"}

                await until(lambda: any("unknown authority" in one for one in told()))
                await until(lambda: any("bad certificate" in one for one in told()))
                await cluster.servers[2].stop()
                strangers.clear()
                cluster.servers[2] = cluster.server("node-3", 2)
                await cluster.servers[2].start()
                client = cluster.client(2)
                await client.start()
                await answered(lambda: client.ensure(box("tls")))
                await client.stop()
            finally:
                await cluster.stop()

    asyncio.run(asyncio.wait_for(play(), 90))


@needs_openssl
def test_a_leaf_speaks_to_members_of_its_authority_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another one, or without any, it says its secret to nobody."""

    async def play() -> None:
        ours, other = Authority(tmp_path, "ours"), Authority(tmp_path, "other")
        hub = Hub(tmp_path, tls=ours.signed("node-1"))
        await hub.server.start()
        try:
            leaf = await hub.leaf("edge", ca=str(ours.ca))
            try:
                await leaf.ensure(box("tls"))
                await send(leaf, box("tls"), "a")
                attachment = await leaf.attach(box("tls"), 1)
                assert bodies(list(await leaf.fetch(attachment, 5, 10.0))) == ["a"]
            finally:
                await leaf.stop()
            monkeypatch.setattr(opening, "CLUSTER_S", 3.0)
            with pytest.raises(Unavailable, match="unknown authority"):
                await hub.leaf("wrong", ca=str(other.ca))
            with pytest.raises(Unavailable, match="no connection to a member"):
                await hub.leaf("plain")
        finally:
            await hub.server.stop()

    asyncio.run(asyncio.wait_for(play(), 90))


@needs_openssl
def test_a_leaf_that_wants_tls_says_nothing_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers in the clear hears the beginning of a handshake."""
    monkeypatch.setattr(opening, "CLUSTER_S", 1.0)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","headers":true}\r\n')
        heard.append(await reader.read(65536))
        writer.close()

    async def play() -> None:
        ca = str(Authority(tmp_path, "ours").ca)
        async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(Unavailable, match="no connection to a member"):
                await Hub(tmp_path).leaf("edge", port=port, ca=ca)
        assert heard and all(said[:1] == b"\x16" for said in heard), "no handshake"

    asyncio.run(asyncio.wait_for(play(), 60))


@needs_openssl
def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    tls = Authority(tmp_path, "ours").signed("node-1")
    settings = ClusterSettings(peers=("a:1",), secret=SECRET, tls=tls)
    assert membership(settings, "node-1").files()[KEY] == Path(tls.key)
    Path(tls.key).chmod(0o644)
    with pytest.raises(ConfigError, match=r"stream\.cluster\.tls\.key .*chmod 600"):
        membership(settings, "node-1")


def test_what_is_no_certificate_is_refused_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not one")
    for ca, words in ((tmp_path / "ca.pem", "is no PEM file"), (tmp_path / "no", "cannot be read")):
        leaf = LeafSettings(urls=("a:1",), secret=LEAF_SECRET, ca=str(ca))
        with pytest.raises(ConfigError, match=rf"stream\.leaf\.ca .*{words}"):
            leaf_link(leaf, "edge")


def test_who_was_turned_away_is_said_once_a_minute(tmp_path: Path) -> None:
    told = [
        ("10.0.0.3", "TLS route handshake error: bad certificate"),
        ("10.0.0.9", 'authentication error - User "x"'),
        ("10.0.0.4", 'Remote server has a duplicate name: "n1"'),
    ]
    assert refusals(LINES) == told
    log = tmp_path / "log"
    trouble = PeerTrouble(LogTail(log))
    for now, expected in ((0.0, told), (1.0, []), (AGAIN_S + 1, told)):
        with log.open("a") as file:
            file.write(LINES)
        assert trouble.look(now) == expected
    assert trouble.look(10 * AGAIN_S) == []
