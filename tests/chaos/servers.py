"""Real nats-servers on the loopback that can be killed, stopped, started again: one, or three."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
from pathlib import Path

from crewlet.broker import server_files

MAX_PAYLOAD = 9 * 2**20

CONFIG = """\
server_name: "{name}"
listen: "127.0.0.1:{port}"
max_payload: {payload}
max_pending: 67108864
jetstream {{ store_dir: "store", sync_interval: always }}
"""
CLUSTER = """\
cluster {{
  name: "chaos"
  listen: "127.0.0.1:{port}"
  no_advertise: true
  routes: [{routes}]
}}
"""


class Server:
    """One nats-server; its port and its folder outlive its processes."""

    def __init__(self, folder: Path, name: str, port: int, cluster: str = "") -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        text = CONFIG.format(name=name, port=port, payload=MAX_PAYLOAD)
        (folder / "nats.conf").write_text(text + cluster)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns when it takes connections."""
        with (self.folder / "nats.log").open("ab") as log:
            self._child = subprocess.Popen(
                [str(server_files.find_program()), "-c", "nats.conf"],
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
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
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


def make_servers(folder: Path, count: int) -> list[Server]:
    """One server alone, or a cluster of three."""
    if count == 1:
        return [Server(folder / "s1", "s1", free_port())]
    ports = [free_port() for _ in range(2 * count)]
    clients, routes = ports[:count], ports[count:]
    all_routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    return [
        Server(
            folder / f"s{n}",
            f"s{n}",
            clients[n - 1],
            CLUSTER.format(port=routes[n - 1], routes=all_routes),
        )
        for n in range(1, count + 1)
    ]


def free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
