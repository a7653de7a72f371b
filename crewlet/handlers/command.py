"""Any command as a handler: the turn as JSON on stdin, the exit code as the outcome."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from crewlet.handlers import process
from crewlet.handlers.handler import (
    OnOverdue,
    allowed_s,
    bound,
    ignore_overdue,
    tell_overdue,
)
from crewlet.handlers.lines import Lines
from crewlet.handlers.outcome_file import OutcomeFile, Unreadable
from crewlet.handlers.outcomes import (
    MAX_ANSWER_BYTES,
    nak,
    raised,
    reason_of,
    said,
    timed_out,
    written,
)
from crewlet.handlers.process import ChildProcess
from crewlet.handlers.program import argv, environment
from crewlet.turn import Defer, Nak, Outcome, Turn, Unavailable

log = structlog.get_logger()

KILL_GRACE_S: Final = 5.0
"""How long a killed process may take before somebody is told (it sits in the kernel)."""


class CommandHandler:
    """Runs one process a turn, in a process group that never outlives the call.

    Exit 0 is Ack with stdout as the answer, or the outcome that it wrote into the file named by
    CREWLET_OUTCOME; 75 is Defer, 69 Unavailable, everything else Nak; the last line of stderr is
    the reason. A timeout, a cancellation or a person's stop ends the group: SIGTERM, then SIGKILL.
    """

    def __init__(
        self,
        command: Sequence[str],
        timeout_s: float,
        on_overdue: OnOverdue = ignore_overdue,
        folder: Path | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        self._command = tuple(command)
        self._timeout_s = timeout_s
        self._on_overdue = on_overdue
        self._folder = folder
        self._secrets = frozenset(secrets)

    async def __call__(self, turn: Turn) -> Outcome:
        try:
            file = OutcomeFile()
        except OSError as error:
            return self._not_started(error)
        try:
            return await self._run(turn, file)
        finally:
            file.close()

    async def _run(self, turn: Turn, file: OutcomeFile) -> Outcome:
        try:
            stdin = msgspec.json.encode(turn)
            child = await self._start(turn, file)
        except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
            return self._not_started(error)
        try:
            child.write(stdin)
            return await self._supervise(turn, child, file)
        except asyncio.CancelledError:
            await self._end_cancelled(turn, child)
            raise
        finally:
            child.close()
            if child.stderr.dropped:
                _log(turn, "handler_stderr_cut", lines=child.stderr.dropped)

    def _not_started(self, error: Exception) -> Nak:
        return nak(f"cannot start {self._command[0]}: {raised(error).reason}")

    async def _start(self, turn: Turn, file: OutcomeFile) -> ChildProcess:
        lines = Lines(lambda line: _log(turn, "handler_stderr", line=line))
        child = ChildProcess(MAX_ANSWER_BYTES, lines)
        command = argv(self._command, self._folder)
        variables = environment(turn, os.environ, file.path, self._secrets)
        await process.start(command, variables, self._folder, child)
        return child

    async def _supervise(self, turn: Turn, child: ChildProcess, file: OutcomeFile) -> Outcome:
        stop = asyncio.ensure_future(turn.stopping())
        timeout_s = allowed_s(turn, self._timeout_s)
        try:
            exited = await child.exited(bound(timeout_s), stop)
        finally:
            stop.cancel()
        if not exited:
            await self._end(turn, child)
        await child.finish()
        if not exited:
            turn.checkpoint()  # a person wanted it to stop, and it has
            return timed_out(timeout_s)
        if child.stdout_cut:
            _log(turn, "handler_answer_cut", most=MAX_ANSWER_BYTES)
        return _outcome(child, file)

    async def _end(self, turn: Turn, child: ChildProcess) -> None:
        """SIGTERM, SIGKILL, and then however long the system takes: the seat is busy."""
        child.kill(signal.SIGTERM)
        if await child.exited(process.TERM_GRACE_S):
            return
        child.kill(signal.SIGKILL)
        if not await child.exited(KILL_GRACE_S):
            tell_overdue(self._on_overdue, turn, "the killed process does not end")
            await child.exited(None)

    async def _end_cancelled(self, turn: Turn, child: ChildProcess) -> None:
        _log(turn, "handler_command_cancelled")
        with suppress(asyncio.CancelledError):  # a second one: killed at once by the caller
            await self._end(turn, child)


def _outcome(child: ChildProcess, file: OutcomeFile) -> Outcome:
    code, last = child.exit_code, child.stderr.last
    if code == 0:
        return _stated(file, child.stdout.decode("utf-8", "replace").strip())
    ended = _signal_name(-code) if code is not None and code < 0 else f"exit {code}"
    reason = f"{ended}: {last}" if last else ended
    match code:
        case process.EX_TEMPFAIL:
            return Defer(reason=reason_of(reason))
        case process.EX_UNAVAILABLE:
            return Unavailable(reason=reason_of(reason))
    return nak(reason)


def _stated(file: OutcomeFile, printed: str) -> Outcome:
    """Of a command that ended well: what it wrote into its file, else its answer."""
    try:
        data = file.read()
    except Unreadable as error:
        return nak(f"the outcome that the command wrote cannot be read: {error}")
    return said(printed) if data is None else written(data, printed)


def _signal_name(number: int) -> str:
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"


def _log(turn: Turn, event: str, **fields: object) -> None:
    log.info(event, turn_id=turn.turn_id, seat=turn.seat.handle, **fields)
