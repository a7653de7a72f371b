"""One child process in a group of its own, with bounded output, that can always be ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from crewlet.handlers.deathsig import dies_with_parent
from crewlet.handlers.lines import Lines

EX_UNAVAILABLE: Final = 69
EX_TEMPFAIL: Final = 75
"""Of sysexits.h: a service is unavailable; not now, not here."""

TERM_GRACE_S: Final = 2.0
"""From SIGTERM to SIGKILL."""

PIPE_GRACE_S: Final = 0.5
"""How long output may still come after the exit: a grandchild may hold the pipes for ever."""


class ChildProcess(asyncio.SubprocessProtocol):
    """What asyncio calls back. `stdout` holds at most `most` bytes of what was written; all of
    it is read, so that a child that writes much never blocks."""

    def __init__(self, most: int, stderr: Lines) -> None:
        loop = asyncio.get_running_loop()
        self.stdout = bytearray()
        self.stdout_cut = False
        self.stderr = stderr
        self._most = most
        self._group_gone = False
        self._exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport
        self._stdin: asyncio.WriteTransport

    @property
    def exit_code(self) -> int | None:
        """Negative is the number of the signal that ended it; None while it runs."""
        return self._transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr.feed(data)
            return
        room = self._most - len(self.stdout)
        self.stdout += data[:room]
        self.stdout_cut = self.stdout_cut or len(data) > room

    def process_exited(self) -> None:
        _resolve(self._exited)

    def connection_lost(self, exc: Exception | None) -> None:
        _resolve(self._closed)

    def write(self, data: bytes) -> None:
        """All of stdin, then its end. A child that does not read it is fine."""
        self._stdin.write(data)
        self._stdin.write_eof()

    async def exited(
        self, timeout_s: float | None, unless: asyncio.Future[None] | None = None
    ) -> bool:
        """Whether the process (not its group) ended within `timeout_s`, and before `unless`."""
        waited = {self._exited} if unless is None else {self._exited, unless}
        await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return self._exited.done()

    async def finish(self) -> None:
        """After the exit: take what output is still under way, then let go of everything."""
        await asyncio.wait({self._closed}, timeout=PIPE_GRACE_S)
        self.close()

    def close(self) -> None:
        """End what is left of the group and let go of the pipes, at once."""
        self.kill(signal.SIGKILL)
        if self._stdin.get_write_buffer_size():  # its close() would wait for a reader
            self._stdin.abort()
        self._transport.close()
        self.stderr.end()

    def kill(self, number: signal.Signals) -> None:
        """Signal the whole group. Nothing happens when it is gone."""
        if self._group_gone:
            return
        # After the exit the group's id is free as soon as its last member is: never twice.
        self._group_gone = number == signal.SIGKILL and self._exited.done()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)


async def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: Path | None,
    child: ChildProcess,
) -> None:
    """Start it. Raises OSError, ValueError or SubprocessError where it can't be started.

    It leads a session of its own: a Ctrl-C in the terminal reaches the node, which lets its
    turns end, and not the command.
    """
    await asyncio.get_running_loop().subprocess_exec(
        lambda: child,
        *argv,
        env=environment,
        cwd=folder,
        start_new_session=True,
        preexec_fn=dies_with_parent(),
    )


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
