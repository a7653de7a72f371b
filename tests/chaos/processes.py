"""One node of a chaos fleet: a real `crewlet up`, killed, stopped and started again."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from actors.admin import AdminClient, CallFailed, NoAnswer, NotRunning

REPOSITORY = Path(__file__).parents[2]


class Life(Struct):
    """One process. Times are CLOCK_MONOTONIC; `failpoint` as it was started with."""

    incarnation: str
    began: float
    failpoint: str = ""
    ended: float = 0.0
    code: int | None = None


async def until(what: Callable[[], Any], within_s: float, why: str = "") -> Any:
    """Poll until `what` is true, or what it awaits is; its value. The deadline is a failure."""
    deadline = time.monotonic() + within_s
    while True:
        value = what()
        if inspect.isawaitable(value):
            value = await value
        if value:
            break
        assert time.monotonic() < deadline, f"not within {within_s} s: {why or what}"
        await asyncio.sleep(0.02)
    return value


class NodeProcess:
    """`lives` are its processes, the last one first in no case: in order."""

    def __init__(self, name: str, folder: Path, company: Path, urls: Sequence[str]) -> None:
        self.name = name
        self.folder = folder
        self.data = folder / "data"
        self.record = folder / "turns.jsonl"
        self.log = folder / "node.log"
        self.lives: list[Life] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._company = company
        self._read_to = 0
        self._lines: list[dict[str, Any]] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.settings = folder / "node.yaml"
        self._urls = urls

    def configure(self, *, replicas: int = 1, more: str = "", lease: str = "") -> None:
        lease = lease or "{ttl_s: 3, renew_s: 1, margin_s: 0.5}"
        self.settings.write_text(
            f"stream: {{type: nats, url: '{','.join(self._urls)}', replicas: {replicas}}}\n"
            f"node: {{id: {self.name}, roles: [seats]}}\n"
            f"lease: {lease}\ndrain_timeout_s: 10\n{more}"
        )

    # -- life -------------------------------------------------------------------------

    def start(self, failpoint: str = "") -> Life:
        life = Life(f"{self.name}#{len(self.lives) + 1}", time.monotonic(), failpoint)
        env = {
            **os.environ,
            "CHAOS_NODE": self.name,
            "CHAOS_INCARNATION": life.incarnation,
            "CHAOS_RECORD": str(self.record),
            "CREWLET_TEST_BUILD": "1",
            "CREWLET_FAILPOINT": failpoint,
        }
        command = [sys.executable, "-m", "crewlet", "up", str(self._company)]
        command += ["--node", str(self.settings), "--data", str(self.data), "--port", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        self.lives.append(life)
        return life

    @property
    def running(self) -> bool:
        """A process is there; notes the end of one that is not any more."""
        if self.process is None:
            return False
        code = self.process.poll()
        if code is None:
            return True
        life = self.lives[-1]
        if life.code is None:
            life.code, life.ended = code, time.monotonic()
        return False

    @property
    def frozen(self) -> bool:
        try:
            assert self.process is not None
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        except (OSError, AssertionError):
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def kill(self) -> float:
        """When it was killed."""
        at = time.monotonic()
        self.signal(signal.SIGKILL)
        await until(lambda: not self.running, 10, f"{self.name} is gone")
        return at

    async def stop(self, within_s: float = 20.0) -> int:
        """In order; the exit code."""
        self.signal(signal.SIGTERM)
        await until(lambda: not self.running, within_s, f"{self.name} drained")
        code = self.lives[-1].code
        assert code is not None
        return code

    async def end(self) -> None:
        if self.running:
            self.signal(signal.SIGCONT)
            await self.kill()

    async def up(self, within_s: float = 30.0) -> None:
        """Until its socket answers."""
        deadline = time.monotonic() + within_s
        while await self.call("status", patience_s=2.0) is None:
            assert self.running, f"{self.name} did not come up: {self.words()}"
            assert time.monotonic() < deadline, f"{self.name} is not up: {self.words()}"
            await asyncio.sleep(0.1)

    async def call(
        self, verb: str, patience_s: float = 5.0, **args: object
    ) -> list[dict[str, Any]] | None:
        """The answer; None where there is none."""
        call = asyncio.to_thread(lambda: list(AdminClient(self.data).call(verb, args)))
        try:
            async with asyncio.timeout(patience_s):
                return await call  # type: ignore[return-value]
        except (NotRunning, NoAnswer, CallFailed, TimeoutError, OSError):
            return None

    def words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else "no log"

    # -- what it recorded -------------------------------------------------------------

    def lines(self) -> list[dict[str, Any]]:
        """All lines so far; only what is new is read."""
        if self.record.exists():
            with self.record.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read_to += len(whole)
            self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines
