"""A nats-server of our own: a supervised child that only this process can reach.

It listens on 127.0.0.1 at a port of its own choice, asks for credentials that were drawn for
this boot, and dies with its parent (docs/adr/0002).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from crewlet.broker import launch, server_files
from crewlet.broker.cluster import Membership
from crewlet.broker.dial import Address
from crewlet.broker.disk import LOOK_S, DiskWatch
from crewlet.broker.leaf import LeafLink
from crewlet.broker.peer_trouble import PeerTrouble
from crewlet.broker.server_config import Plan, configuration
from crewlet.broker.server_files import LOG
from crewlet.broker.server_log import LogTail
from crewlet.broker.settings import Sync
from crewlet.broker.store_lock import StoreLock
from crewlet.broker.tls import link_files
from crewlet.errors import BrokerRefused

log = structlog.get_logger(__name__)

USER: Final = "crewlet"
READY_S: Final = 60.0
"""10,000 mailboxes were recovered in 8 s (design: measured); an empty store takes 45 ms."""

TERM_S: Final = 3.0
"""nats-server takes 10 ms a consumer to end by itself, and loses nothing when it is killed."""

BACKOFF_S: Final = (0.05, 5.0)
_ANYWHERE: Final = ("0.0.0.0", "::", "[::]")  # noqa: S104 - compared, not bound
HEALTHY_S: Final = 30.0
"""After this long the next crash is a first one again."""


class EmbeddedServer:
    """One nats-server on one folder, kept running between `start` and `stop`.

    `sync` None keeps everything in memory; the folder then holds run files only. `member` makes
    it one of a cluster, `leaf` one that keeps no streams and carries to those that do. The child
    dies with the thread that called `start` (a rule of PDEATHSIG): let that be the main one.
    `on_moved` is told the new address when a restarted server could not have its old port.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sync: Sync | None = "always",
        member: Membership | None = None,
        leaf: LeafLink | None = None,
        on_moved: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder
        self._password = secrets.token_hex(32)
        self._plan = Plan(USER, self._password, sync, member, leaf)
        self._lock = StoreLock(folder)
        self._program: Path | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._port = -1
        self._up = False
        self._stopped = False
        self._booting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self.on_moved = on_moved

    @property
    def url(self) -> str:
        host = self._plan.host
        return f"nats://{'127.0.0.1' if host in _ANYWHERE else host}:{self._port}"

    @property
    def log(self) -> Path:
        """What the child says of itself."""
        return self._folder / LOG

    @property
    def address(self) -> Address:
        """For the client: the only place that the credentials go to besides the child."""
        return Address((self.url,), user=USER, password=self._password)

    @property
    def pid(self) -> int | None:
        """Of the child that runs now."""
        return self._child.pid if self._child is not None else None

    @property
    def ready(self) -> bool:
        """A child runs, and has said where it listens."""
        return self._up

    async def start(self) -> None:
        """Returns when the server answers. NodeRefused where another process has the folder,
        BrokerRefused where the server cannot run. Leaves nothing behind when it fails."""
        if self._stopped:
            raise BrokerRefused("the embedded broker was stopped: open another one")
        if self._watching is not None:
            return
        self._booting = asyncio.create_task(self._boot())
        try:
            await asyncio.wait({self._booting})
        finally:
            if not self._booting.done():
                self._booting.cancel()
                await asyncio.wait({self._booting})
        if self._booting.cancelled():
            raise BrokerRefused("the embedded broker was stopped while it started")
        self._booting.result()

    async def stop(self) -> None:
        """End the child, within TERM_S and a moment; also one that is starting. For good:
        its credentials were for one boot. Idempotent."""
        self._stopped = True
        for task in (self._booting, self._watching):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
        self._watching = None
        await self._end()

    # -- inside ----------------------------------------------------------------------------

    async def _boot(self) -> None:
        server_files.prepare_folder(self._folder)
        await self._lock.take()
        try:
            if self._plan.member is not None and self._plan.member.routed:
                server_files.check_store(self._folder)
            server_files.clean(self._folder)
            self._program = server_files.find_program()
            await server_files.check_version(self._program)
            await self._spawn(self._plan.wanted_port)
        except BaseException:
            await self._end()
            raise
        self._watching = asyncio.create_task(self._watch())
        log.info("broker_server_started", pid=self.pid, port=self._port)

    async def _end(self) -> None:
        try:
            await self._end_child()
        finally:
            if self._lock.held:
                server_files.clean(self._folder)
                self._lock.free()

    async def _spawn(self, port: int) -> None:
        """Start a child and wait until it answers; no child is left when that fails."""
        server_files.clean(self._folder)
        for part in (self._plan.member, self._plan.leaf):
            if part is not None:
                link_files(self._folder, part.files())
        server_files.write_config(self._folder, configuration(self._plan, port))
        self._child = await self._fork()
        try:
            self._port = await self._ready(self._child)
            self._up = True
        except BaseException:
            await self._end_child()
            raise
        finally:
            # The server has read it, or never will.
            (self._folder / server_files.CONFIG).unlink(missing_ok=True)

    async def _fork(self) -> asyncio.subprocess.Process:
        output = os.open(
            self._folder / server_files.OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
        )
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", launch.__file__, str(os.getpid())),
                *(str(self._program), "-c", server_files.CONFIG),
                cwd=self._folder,
                # Nothing of the node's environment: it may hold the keys of vendors.
                env={"TMPDIR": os.environ.get("TMPDIR", "/tmp")},  # noqa: S108
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=(self._lock.fd,),
            )
        finally:
            os.close(output)

    async def _ready(self, child: asyncio.subprocess.Process) -> int:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if child.returncode is not None:
                words = server_files.last_words(self._folder)
                raise BrokerRefused(f"the embedded broker did not start: {words}")
            port = server_files.read_port(self._folder, child.pid)
            if port is not None:
                return port
            await asyncio.sleep(0.005)
        raise BrokerRefused(f"the embedded broker was not ready after {READY_S:.0f} s")

    async def _watch(self) -> None:
        delay_s = BACKOFF_S[0]
        while (child := self._child) is not None:
            since = time.monotonic()
            code = await self._outlived(child)
            self._up = False
            if time.monotonic() - since > HEALTHY_S:
                delay_s = BACKOFF_S[0]
            log.error("broker_server_died", pid=child.pid, code=code, again_in_s=delay_s)
            await asyncio.sleep(delay_s)
            delay_s = min(BACKOFF_S[1], 2 * delay_s)
            await self._respawn()

    async def _outlived(self, child: asyncio.subprocess.Process) -> int:
        """The child's code when it has ended. One that met a full disk is ended when there is
        room again: it writes nothing more by itself."""
        disk, peers = DiskWatch(self.log, self._folder), PeerTrouble(LogTail(self.log))
        ended = asyncio.ensure_future(child.wait())
        try:
            while not ended.done():
                await asyncio.wait({ended}, timeout=LOOK_S)
                for host, words in peers.look(time.monotonic()):
                    log.warning("broker_peer_trouble", peer=host, reason=words)
                match disk.look():
                    case "full":
                        log.critical(
                            "broker_disk_full",
                            folder=str(self._folder),
                            note="nothing is stored now; it goes on by itself when there is room",
                        )
                    case "room again" if not ended.done():
                        log.warning("broker_disk_has_room", pid=child.pid)
                        child.terminate()
            return await ended
        finally:
            ended.cancel()

    async def _respawn(self) -> None:
        """Until a server runs again: on its old port, so that clients find it by themselves,
        and on a new one where somebody else has that."""
        old, delay_s = self._port, BACKOFF_S[0]
        for attempt in range(1_000_000):
            try:
                await self._spawn(old if attempt % 2 == 0 else self._plan.wanted_port)
            except (BrokerRefused, OSError) as error:
                log.error("broker_server_down", error=str(error), again_in_s=delay_s)
                await asyncio.sleep(delay_s if attempt else 0)
                delay_s = min(BACKOFF_S[1], 2 * delay_s)
            else:
                break
        log.warning("broker_server_restarted", pid=self.pid, port=self._port)
        if self._port != old and self.on_moved is not None:
            self.on_moved(self.url)

    async def _end_child(self) -> None:
        child, self._child, self._up = self._child, None, False
        if child is None or child.returncode is not None:
            return
        try:
            child.send_signal(signal.SIGTERM)
            async with asyncio.timeout(TERM_S):
                await child.wait()
        except TimeoutError:
            log.info("broker_server_killed", pid=child.pid, after_s=TERM_S)
        finally:
            # Also where this very wait was cancelled: nothing is left behind.
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
