"""One daemon thread per running call.

Not an executor: the interpreter joins an executor's threads when it leaves, and a handler
that hangs would then keep a process alive that has nothing left to do.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def run_in_thread(function: Callable[..., Any], argument: object, name: str) -> asyncio.Future[Any]:
    """A future of `function(argument)`. Cancelling the future does not stop the thread.

    The call sees the caller's context variables. A thread that cannot be started is the
    future's exception.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def body() -> None:
        try:
            report(context.run(function, argument), None)
        except BaseException as error:  # SystemExit too: it ends this call, not the process
            report(None, error)

    def report(value: object, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            loop.call_soon_threadsafe(_resolve, future, value, error)

    try:
        threading.Thread(target=body, name=name, daemon=True).start()
    except RuntimeError as error:
        future.set_exception(error)
    return future


def _resolve(future: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future refuses to carry one
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    else:
        future.set_exception(error)
