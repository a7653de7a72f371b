"""The child: reachable by its parent only, on a folder of its own, gone when its parent is."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from actors.ports import Unavailable
from crewlet.broker import embedded, server_files
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.opening import open_broker
from crewlet.broker.server_config import Plan, configuration
from crewlet.broker.settings import StreamSettings
from crewlet.broker.wire import Wire
from crewlet.errors import BrokerRefused, NodeRefused
from tests.broker.real import Real, box, serving, until


def _listening(pid: int) -> list[tuple[str, int]]:
    return [
        (one.laddr.ip, one.laddr.port)
        for one in psutil.Process(pid).net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    ]


@pytest.mark.certifies(5)
def test_it_listens_on_one_port_of_the_loopback_only(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            assert real.server.pid is not None
            ((host, port),) = _listening(real.server.pid)
            assert (host, f"nats://{host}:{port}") == ("127.0.0.1", real.server.url)

    asyncio.run(play())


@pytest.mark.certifies(5)
def test_the_secret_is_on_no_command_line_in_no_environment_and_in_no_file(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            secret = real.server.address.password
            assert secret is not None and len(bytes.fromhex(secret)) == 32
            assert secret not in repr(real.server.address)
            process = psutil.Process(real.server.pid)
            assert secret not in " ".join(process.cmdline())
            assert set(process.environ()) <= {"TMPDIR", "LC_CTYPE"}
            client = real.client()
            await client.start()
            await client.ensure(box())
            await client.publish(box().topic, b"x", message_id="x")
            await client.stop()
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert files
            for path in files:
                assert secret.encode() not in path.read_bytes(), path
                assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
            assert stat.S_IMODE((tmp_path / server_files.RUN).stat().st_mode) == 0o700

    asyncio.run(play())


@pytest.mark.certifies(5)
def test_the_configuration_is_readable_by_nobody_else_while_it_exists(tmp_path: Path) -> None:
    server_files.prepare_folder(tmp_path)
    old = os.umask(0)
    try:
        server_files.write_config(tmp_path, configuration(Plan("u", "p"), -1))
    finally:
        os.umask(old)
    path = tmp_path / server_files.CONFIG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "sync_interval: always" in path.read_text()
    server_files.clean(tmp_path)
    assert not path.exists()


@pytest.mark.certifies(5)
def test_nobody_connects_without_this_boot_s_credentials(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            url, user = real.server.address.servers, real.server.address.user
            for address in (Address(url), Address(url, user=user, password="0" * 64)):
                with pytest.raises(BrokerRefused):
                    await Wire(address).open(5)
        async with serving(tmp_path) as again:
            assert again.server.address.password != real.server.address.password
            with pytest.raises(BrokerRefused):
                old = real.server.address
                await Wire(
                    Address(again.server.address.servers, user=user, password=old.password)
                ).open(5)

    asyncio.run(play())


@pytest.mark.certifies(4)
def test_a_second_opener_is_refused_and_told_who_has_the_folder(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            with pytest.raises(NodeRefused, match=str(os.getpid())):
                await EmbeddedServer(tmp_path).start()
            client = real.client()
            await client.start()  # the first is unharmed
            await client.stop()

    asyncio.run(play())


_PARENT = """
import asyncio, sys
from pathlib import Path
from crewlet.broker.embedded import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.certifies(4)
def test_it_dies_with_a_parent_that_is_killed_and_the_next_boot_has_the_folder(
    tmp_path: Path,
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    # Its own log lines come before; the last line is the child's process.
    lines = iter(parent.stdout.readline, "")
    child = psutil.Process(int(next(line for line in lines if line.strip().isdigit())))
    (tmp_path / server_files.CONFIG).write_text("left by a boot that was killed")
    parent.kill()
    parent.wait()

    async def next_boot() -> None:
        await until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
        async with serving(tmp_path) as real:
            assert real.server.pid != child.pid
            assert not (tmp_path / server_files.CONFIG).exists()

    asyncio.run(next_boot())


@pytest.mark.certifies(4)
def test_a_crash_is_repaired_on_the_same_port(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            url = real.server.url
            for _ in range(2):
                await real.restart()
                assert real.server.url == url

    asyncio.run(play())


@pytest.mark.certifies(4)
def test_a_port_that_was_taken_meanwhile_moves_the_server_and_its_client(tmp_path: Path) -> None:
    async def play() -> None:
        broker = await open_broker(
            StreamSettings(store_dir="store"), node_id="n", data_dir=tmp_path
        )
        await broker.ensure(box())
        server = broker._server  # type: ignore[attr-defined]
        old, pid = server.url, server.pid
        port = int(old.rpartition(":")[2])
        os.kill(pid, signal.SIGSTOP)
        thief = None
        os.kill(pid, signal.SIGKILL)
        while thief is None:
            try:
                thief = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", port)
            except OSError:
                assert server.pid in (pid, None) or not server.ready, "it was faster than we"
                await asyncio.sleep(0)
        async with thief:
            await until(lambda: server.ready and server.url != old)
            await until(lambda: broker.connected)
            await broker.publish(box().topic, b"x", message_id="x")
        await broker.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(4)
def test_stopping_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        for turns in (0, 1, 3, 10, 40, 200):
            server = EmbeddedServer(tmp_path)
            starting = asyncio.create_task(server.start())
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            await server.stop()
            await asyncio.wait({starting})
            if not starting.cancelled():
                starting.exception()
            assert server.pid is None
        for turns in (0, 3, 12, 30):
            server = EmbeddedServer(tmp_path)
            starting = asyncio.create_task(server.start())
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            starting.cancel()
            await asyncio.wait({starting})
            if not starting.cancelled():  # it was faster
                await server.stop()
            assert not _children()
        assert not _children()

    asyncio.run(play())


def _children() -> list[str]:
    return [
        child.name()
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.certifies(4)
def test_a_child_that_ignores_the_signal_is_killed_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "TERM_S", 0.2)

    async def play() -> None:
        real = Real(tmp_path)
        await real.server.start()
        pid = real.server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        async with asyncio.timeout(5):
            await real.server.stop()
        assert not psutil.pid_exists(pid)

    asyncio.run(play())


@pytest.mark.certifies(6)
@pytest.mark.parametrize(
    "name", ["a b", "quote\"s and 'more'", "ünïcode-Ω", "back\\slash", "x" * 200, "new\nline"]
)
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    async def play() -> None:
        folder = tmp_path / name / "deeper"
        async with serving(folder) as real:
            client = real.client()
            await client.start()
            assert await client.ensure(box())
            await client.stop()
        async with serving(folder) as real:
            client = real.client()
            await client.start()
            assert not await client.ensure(box()), "the store was not found again"
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(6)
def test_without_a_store_nothing_is_kept(tmp_path: Path) -> None:
    async def play() -> None:
        for _ in range(2):
            settings = StreamSettings(store_dir="")
            broker = await open_broker(settings, node_id="n", data_dir=tmp_path)
            assert await broker.ensure(box()) is True
            await broker.stop()
        assert not list(tmp_path.rglob("scratch"))

    asyncio.run(asyncio.wait_for(play(), 30))


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "nats-server"
    other.write_text("#!/bin/sh\necho nats-server: v2.9.10\n")
    other.chmod(0o755)
    monkeypatch.setattr(server_files, "find_program", lambda: other)

    async def play() -> None:
        server = EmbeddedServer(tmp_path / "store")
        with pytest.raises(BrokerRefused, match=r"2\.9\.10"):
            await server.start()
        await server.stop()

    asyncio.run(play())


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async def play() -> None:
        (tmp_path / "jetstream").write_text("a file where the store should be")
        with pytest.raises(BrokerRefused):
            await EmbeddedServer(tmp_path).start()
        assert not _children()

    asyncio.run(play())


def test_nobody_there_is_unavailable_in_time() -> None:
    async def play() -> None:
        with pytest.raises(Unavailable):
            await Wire(Address(("nats://127.0.0.1:1",))).open(0.3)

    asyncio.run(play())
