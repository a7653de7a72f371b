"""A network of its own for each nats-server, where the machine allows it: root, `ip`, namespaces.

Servers hang on one bridge, which the processes of the nodes reach as an ordinary network. A server
whose link is down is cut off from its peers and from its clients, and nothing tells it so.
"""

from __future__ import annotations

import os
import shutil
import subprocess

NETWORK = "10.213.{run}.{host}"


class Namespaces:
    """`count` networks on a bridge; `close` takes all of it away."""

    def __init__(self, count: int) -> None:
        self._run = os.getpid() % 250
        self._mark = f"cx{self._run}"
        self._bridge = f"{self._mark}b"
        self._count = count

    @staticmethod
    def possible() -> bool:
        """Whether this machine lets us make one."""
        if os.geteuid() != 0 or shutil.which("ip") is None:
            return False
        name = f"cxtry{os.getpid()}"
        try:
            _ip("netns", "add", name)
            _ip("netns", "delete", name)
        except (subprocess.CalledProcessError, OSError):
            return False
        return True

    def open(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._address(254)}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number in range(self._count):
            name, here, there = (
                self.name(number),
                f"{self._mark}h{number}",
                f"{self._mark}n{number}",
            )
            _ip("netns", "add", name)
            _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            _ip("link", "set", here, "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{self.host(number)}/24", "dev", there)
            _ip("-n", name, "link", "set", there, "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def close(self) -> None:
        for number in range(self._count):
            _ip("netns", "delete", self.name(number), check=False)
            _ip("link", "delete", f"{self._mark}h{number}", check=False)
        _ip("link", "delete", self._bridge, check=False)

    def name(self, number: int) -> str:
        return f"{self._mark}s{number}"

    def host(self, number: int) -> str:
        return self._address(number + 1)

    def cut(self, number: int, *, off: bool) -> None:
        """The server's end of the wire: nobody hears it, and it hears nobody."""
        there = f"{self._mark}n{number}"
        _ip("-n", self.name(number), "link", "set", there, "down" if off else "up")

    def _address(self, host: int) -> str:
        return NETWORK.format(run=self._run, host=host)


def _ip(*args: str, check: bool = True) -> None:
    subprocess.run(["ip", *args], check=check, capture_output=True, timeout=10)
