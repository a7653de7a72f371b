"""Real nats-servers that can be killed, stopped, cut off and started again: one, or three."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
from pathlib import Path

from crewlet.broker import server_files
from tests.chaos.disks import Disk
from tests.chaos.namespaces import Namespaces

MAX_PAYLOAD = 9 * 2**20

LOOPBACK = "127.0.0.1"
CLIENTS, ROUTES = 4222, 6222

CONFIG = """\
server_name: "{name}"
listen: "{host}:{port}"
max_payload: {payload}
max_pending: 67108864
ping_interval: "5s"
ping_max: 2
jetstream {{ store_dir: "store", sync_interval: always }}
"""
CLUSTER = """\
cluster {{
  name: "chaos"
  listen: "{host}:{port}"
  no_advertise: true
  routes: [{routes}]
}}
"""


class Server:
    """One nats-server; its port and its folder outlive its processes. `inside` names the network
    namespace that it runs in, if any."""

    def __init__(
        self, folder: Path, name: str, host: str, port: int, cluster: str = "", inside: str = ""
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.folder = folder
        self._inside = inside
        self.disk: Disk | None = None
        self._read_to = 0
        self._child: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        text = CONFIG.format(name=name, host=host, port=port, payload=MAX_PAYLOAD)
        (folder / "nats.conf").write_text(text + cluster)

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    def on_a_small_disk(self) -> None:
        """Before it is first started: what it stores may be kept from it."""
        self.disk = Disk(self.folder / "store")
        self.disk.mount()

    def says_full(self) -> bool:
        """Whether it has met the end of its disk since this was last asked."""
        with (self.folder / "nats.log").open("rb") as log:
            log.seek(self._read_to)
            new = log.read()
        self._read_to += len(new)
        return b"no space left" in new

    async def start(self) -> None:
        """Returns when it takes connections."""
        entering = ["ip", "netns", "exec", self._inside] if self._inside else []
        with (self.folder / "nats.log").open("ab") as log:
            self._child = subprocess.Popen(  # `ip netns exec` becomes the server: one process
                [*entering, str(server_files.find_program()), "-c", "nats.conf"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        async with asyncio.timeout(30):
            while not await self._answers():
                await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            await asyncio.to_thread(self._child.wait)
            self._child = None

    def freeze(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGCONT)


def make_servers(folder: Path, count: int, networks: Namespaces | None) -> list[Server]:
    """One server alone, or a cluster of three; each in its network where there are any."""
    if networks is not None:
        hosts = [networks.host(n) for n in range(count)]
        clients, routes = [CLIENTS] * count, [ROUTES] * count
    else:
        hosts = [LOOPBACK] * count
        ports = [free_port() for _ in range(2 * count)]
        clients, routes = ports[:count], ports[count:]
    all_routes = ", ".join(f'"nats://{h}:{p}"' for h, p in zip(hosts, routes, strict=True))
    return [
        Server(
            folder / f"s{n + 1}",
            f"s{n + 1}",
            hosts[n],
            clients[n],
            CLUSTER.format(host=hosts[n], port=routes[n], routes=all_routes) if count > 1 else "",
            networks.name(n) if networks is not None else "",
        )
        for n in range(count)
    ]


def free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])
