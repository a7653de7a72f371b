"""A nats-server for the suite, as an operator would run one: no credentials, its own folder."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path

from crewlet.broker import server_files

_CONFIG = """\
host: "127.0.0.1"
port: {port}
ports_file_dir: "{folder}"
max_payload: 8650752
jetstream {{ store_dir: "{folder}/store", sync_interval: "2m" }}
"""

READY_S = 20.0


class NatsServer:
    """One server on one folder; it keeps its port over a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        self._port = -1

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Returns when the server takes clients."""
        for old in self._folder.glob("*.ports"):
            old.unlink()
        config = self._folder / "nats.conf"
        config.write_text(_CONFIG.format(port=self._port, folder=self._folder))
        with (self._folder / "nats.log").open("ab") as log:
            self._child = subprocess.Popen(
                [server_files.find_program(), "-c", config], stdout=log, stderr=log
            )
        self._port = self._ready(self._child)

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        child.kill()
        child.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _ready(self, child: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            assert child.poll() is None, (self._folder / "nats.log").read_text()
            for ports in self._folder.glob("*.ports"):
                with contextlib.suppress(json.JSONDecodeError):
                    return int(json.loads(ports.read_text())["nats"][0].rsplit(":", 1)[1])
            time.sleep(0.01)
        raise AssertionError("nats-server was not ready in time")
