"""One caller of the endpoint: its request, the rows, and exactly one last line."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

import structlog

from actors.admin.frames import End, Failure, Request, decode_request, end_line, error_line
from actors.admin.frames import row_line as encode_row
from actors.admin.verbs import AnyVerb, Caller, Refused

REQUEST_S: Final = 30.0
"""How long a caller may take to say what it wants."""

FAREWELL_S: Final = 1.0
"""How long the last line may take to reach a caller that reads slowly, or not at all."""

_log = structlog.get_logger("actors.admin")


class Connection:
    """From the request to the last line. The caller's vanishing closes the verb's generator."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        verbs: Mapping[str, AnyVerb],
        explain: Callable[[Exception], Failure | None],
        caller: Caller,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._verbs = verbs
        self._explain = explain
        self._caller = caller
        self._work: asyncio.Task[bytes] | None = None
        self._may_end = True  # a caller that has asked for nothing yet loses nothing
        self._farewell: bytes | None = None

    async def serve(self) -> None:
        """Read one request and answer it; never raises for what the caller or a verb did."""
        work = self._work = asyncio.ensure_future(self._answer())
        try:
            await asyncio.wait((work,))
        finally:
            # Without this a cancelled connection would leave its verb running on its own.
            work.cancel()
        with contextlib.suppress(ConnectionError):
            await self._leave(self._last_line(work))

    async def refuse(self, failure: Failure) -> None:
        """The last line without a request."""
        await self._leave(error_line(failure))

    def end_follower(self) -> None:
        """The node stops: a follower's answer is over, and came through."""
        if self._may_end:
            self._interrupt(end_line(End(reason="stopping")))

    def end_late(self) -> None:
        """The node has waited: whatever still runs did not come through."""
        self._interrupt(
            error_line(Failure("stopping", "the node stopped before this was done", exit=1))
        )

    def _interrupt(self, farewell: bytes) -> None:
        if self._work is not None and not self._work.done() and self._farewell is None:
            self._farewell = farewell
            self._work.cancel()

    def _last_line(self, work: asyncio.Task[bytes]) -> bytes:
        if work.cancelled():
            return self._farewell or b""
        error = work.exception()
        if isinstance(error, ConnectionError):
            return b""
        return work.result() if error is None else error_line(self._failure("", error))

    async def _answer(self) -> bytes:
        """The rows, sent; and the last line, to be sent."""
        try:
            request = await self._request()
            verb = self._verbs.get(request.verb)
            if verb is None:
                known = ", ".join(sorted(self._verbs))
                raise Refused("unknown_verb", f"no verb {request.verb!r} here; there are: {known}")
            self._may_end = verb.follows
            rows = verb.start(request.args, self._caller)
        except Refused as refused:
            return error_line(refused.failure)
        return await self._watched(request.verb, rows)

    async def _request(self) -> Request:
        try:
            async with asyncio.timeout(REQUEST_S):
                line = await self._reader.readline()
            if not line.endswith(b"\n"):
                raise ConnectionResetError("the caller left before its request was whole")
            return decode_request(line)
        except TimeoutError:
            raise Refused("no_request", f"no request within {REQUEST_S:.0f} s", exit=2) from None
        except ValueError as error:  # decode_request's; or readline's, for a line over the limit
            raise Refused("bad_request", str(error), exit=2) from None

    async def _watched(self, verb: str, rows: AsyncGenerator[object, None]) -> bytes:
        """Send the rows for as long as the caller is there.

        A caller sends nothing after its request: whatever its side says next is its end.
        """
        sending = asyncio.ensure_future(self._send(verb, rows))
        gone = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ConnectionResetError("the caller has gone")
            return sending.result()
        finally:
            gone.cancel()
            sending.cancel()
            await asyncio.wait((sending, gone))

    async def _send(self, verb: str, rows: AsyncGenerator[object, None]) -> bytes:
        try:
            async with contextlib.aclosing(rows):
                async for row in rows:
                    self._writer.write(encode_row(row))
                    await self._writer.drain()
        except ConnectionError:
            raise
        except Exception as error:
            return error_line(self._failure(verb, error))
        return end_line(End())

    def _failure(self, verb: str, error: BaseException) -> Failure:
        if isinstance(error, Refused):
            return error.failure
        if isinstance(error, Exception) and (known := self._explain(error)) is not None:
            return known
        # The text of an exception may quote the arguments: the log gets its kind and its place.
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f"{last[0].filename}:{last[0].lineno}" if last else ""
        _log.error("admin_verb_failed", verb=verb, error=type(error).__name__, place=place)
        return Failure("internal", f"{type(error).__name__}: {error}")

    async def _leave(self, last_line: bytes) -> None:
        """Send the last line and close; a caller that does not read is cut off."""
        try:
            self._writer.write(last_line)
            async with asyncio.timeout(FAREWELL_S):
                await self._writer.drain()
                self._writer.close()
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()
