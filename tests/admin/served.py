"""An endpoint with verbs of its own, on a loop in a thread: what a node is to its clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from actors.admin import Caller, Endpoint, Failure, Refused, Verb
from actors.admin.verbs import AnyVerb


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class Count(Struct, forbid_unknown_fields=True):
    to: int
    size: int = 0


class Explained(Exception):
    """An error that the node's own `explain` knows."""


class Verbs:
    """The verbs, and what became of them."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.started = threading.Event()
        self.sent = 0

    async def count(self, args: Count, caller: Caller) -> AsyncGenerator[object, None]:
        for number in range(args.to):
            self.sent += 1
            yield {"number": number, "text": "x" * args.size}

    async def follow(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        try:
            yield {"type": "first"}
            self.started.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()

    async def slow(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        try:
            self.started.set()
            await asyncio.Event().wait()
            yield None
        finally:
            self.closed.set()

    async def refuse(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        yield {"number": 1}
        raise Refused("no_mailbox", "there is no seat of this handle")

    async def break_(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        raise RuntimeError("out of cheese")
        yield

    async def explained(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        raise Explained("the broker did not answer")
        yield

    def table(self) -> dict[str, AnyVerb]:
        return {
            "count": Verb(Count, self.count),
            "follow": Verb(Nothing, self.follow, follows=True),
            "slow": Verb(Nothing, self.slow),
            "refuse": Verb(Nothing, self.refuse),
            "break": Verb(Nothing, self.break_),
            "explained": Verb(Nothing, self.explained),
        }


def explain(error: Exception) -> Failure | None:
    return Failure("peer", str(error), exit=1) if isinstance(error, Explained) else None


class Served:
    """The endpoint while it runs; `stop` may be called early."""

    def __init__(self, data_dir: Path, verbs: Mapping[str, AnyVerb]) -> None:
        self.data_dir = data_dir
        self.loop = asyncio.new_event_loop()
        self.endpoint = Endpoint(data_dir, verbs, explain=explain)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self.endpoint.start())

    def run(self, coroutine: object) -> object:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)  # type: ignore[arg-type]

    def stop(self) -> None:
        self.run(self.endpoint.stop())

    def close(self) -> None:
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


@contextlib.contextmanager
def served(data_dir: Path, verbs: Mapping[str, AnyVerb]) -> Iterator[Served]:
    data_dir.mkdir(parents=True, exist_ok=True)
    running = Served(data_dir, verbs)
    try:
        yield running
    finally:
        running.close()
