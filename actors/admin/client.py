"""The client of an admin endpoint: blocking, one connection a call."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import UNSET

from actors.admin import frames, peer
from actors.admin.frames import Failure
from actors.admin.paths import owner_of, socket_candidates

CONNECT_S: Final = 5.0
SILENCE_S: Final = 60.0
"""How long a verb that has an end may say nothing: longer than any deadline on the node."""

LOOK_S: Final = 1.0
"""After so much silence it is seen whether the node's process runs at all."""


class NotRunning(Exception):
    """No node answers on the data folder's socket."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(f"no node runs on {data_dir}")
        self.data_dir = data_dir


class NoAnswer(Exception):
    """The node was silent for too long, or died before its answer was whole."""


class CallFailed(Exception):
    """The node answered, and the answer is a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ReaderGone(BrokenPipeError):
    """Whoever reads our output has gone: there is nobody left to ask for."""


class AdminClient:
    """Calls the verbs of the node that runs on `data_dir`."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def call(self, verb: str, args: Mapping[str, object] | None = None) -> Iterator[object]:
        """The rows of the answer, decoded, as they come. Integers of any size stay exact.

        Raises NotRunning, CallFailed or NoAnswer, before the first row or after any.
        """
        for row in self.call_raw(verb, args):
            yield json.loads(row)

    def call_raw(
        self,
        verb: str,
        args: Mapping[str, object] | None = None,
        *,
        endless: bool = False,
        output: int | None = None,
    ) -> Iterator[bytes]:
        """The rows as JSON bytes, exactly as the node wrote them.

        `endless` waits for the next row for as long as it takes. `output` is a descriptor
        that the rows are written to: when its reader goes, the call ends with ReaderGone,
        also while nothing is there to be written.
        """
        request = frames.encode_request(verb, args or {})
        with self._connect() as connection:
            # A node that refuses us may close early: its last line says why.
            with contextlib.suppress(ConnectionError):
                _send(connection, request)
            connection.setblocking(False)
            wait_s = None if endless else SILENCE_S
            yield from _rows(_lines(connection, wait_s, output))

    def _connect(self) -> socket.socket:
        for path in socket_candidates(self._data_dir):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(CONNECT_S)
                connection.connect(os.fspath(path))
                self._check_server(connection, path)
            except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
                connection.close()
                continue
            except PermissionError:
                connection.close()
                raise CallFailed(
                    Failure("forbidden", f"{path} serves another user's node", exit=3)
                ) from None
            except OSError as error:
                connection.close()
                raise NoAnswer(f"{path}: {_why_not(error)}") from None
            return connection
        raise NotRunning(self._data_dir)

    def _check_server(self, connection: socket.socket, path: Path) -> None:
        """A socket that somebody else put there does not get our arguments."""
        if peer.uid_of(connection) not in (os.getuid(), 0, owner_of(self._data_dir)):
            raise PermissionError(f"{path} is served by another user")


def _send(connection: socket.socket, request: bytes) -> None:
    """A stopped node leaves a request unread that is larger than its socket."""
    connection.settimeout(LOOK_S)
    rest, silent_s = memoryview(request), 0.0
    while rest:
        try:
            rest, silent_s = rest[connection.send(rest) :], 0.0
        except TimeoutError:
            silent_s += LOOK_S
            _check_silence(connection, silent_s, SILENCE_S)


def _rows(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        try:
            frame = frames.decode_frame(line)
        except ValueError as error:
            raise NoAnswer(str(error)) from None
        if frame.error is not UNSET:
            raise CallFailed(frame.error)
        if frame.end is not UNSET:
            return
        if frame.row is not UNSET:
            yield bytes(frame.row)
    raise NoAnswer("the node died before its answer was whole")


def _why_not(error: OSError) -> str:
    if isinstance(error, BlockingIOError):  # those who wait to be let in are too many
        return "it lets nobody in: its process is stopped, or does nothing but compute"
    return error.strerror or str(error)


def _lines(connection: socket.socket, wait_s: float | None, output: int | None) -> Iterator[bytes]:
    """The lines of the connection until its end; a last piece without a line end is dropped."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    if output is not None:
        poll.register(output, 0)  # errors only: they are always reported
    pending, silent_s = bytearray(), 0.0
    while True:
        ready = poll.poll(LOOK_S * 1000)
        silent_s = 0.0 if ready else silent_s + LOOK_S
        if not ready:
            _check_silence(connection, silent_s, wait_s)
            continue
        if any(fd == output for fd, _events in ready):
            raise ReaderGone
        try:
            data = connection.recv(1 << 18)
        except BlockingIOError:
            continue
        except ConnectionError:
            return
        if not data:
            return
        pending += data
        if b"\n" in data:
            *whole, rest = pending.split(b"\n")
            pending = bytearray(rest)
            yield from map(bytes, whole)
        if len(pending) > frames.MAX_FRAME_BYTES:
            raise NoAnswer(f"a line of more than {frames.MAX_FRAME_BYTES} bytes")


def _check_silence(connection: socket.socket, silent_s: float, wait_s: float | None) -> None:
    """A process that was stopped says nothing for ever; one that runs may need its time."""
    pid = peer.pid_of(connection)
    if peer.is_stopped(pid):
        way = f"`kill -CONT {pid}` has it go on, and it may do then what it was told"
        raise NoAnswer(f"its process {pid} is stopped: {way}")
    if wait_s is not None and silent_s >= wait_s:
        raise NoAnswer(
            f"its process {pid} said nothing for {wait_s:.0f} s: whether it did it is not known"
        )
