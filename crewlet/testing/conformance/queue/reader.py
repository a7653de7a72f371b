"""The handler of a case: it writes down what it is given and answers by a script."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from actors.delivery import Outcome
from crewlet.events import Event, Trace
from crewlet.queue import Batch
from crewlet.testing.conformance.harness import SOON_S

Said: TypeAlias = Outcome | Exception | None

BEGIN: Final = datetime(2026, 3, 1, tzinfo=UTC)
_seconds = itertools.count(1_000)


def event(topic: str, name: str, *, key: str = "", at: float | None = None) -> Event:
    """An event of this name. Its id is the topic's and the name's, so that a case may say it
    twice; its time counts up unless `at` (seconds) is given."""
    after_s = next(_seconds) if at is None else at
    return Event.new(
        "conformance_event",
        id=f"{topic}/{name}",
        at=BEGIN + timedelta(seconds=after_s),
        trace=Trace.root(),
        payload={"name": name, "key": key},
    )


def name_of(one: Event) -> str:
    return one.extra("name", str, "")


def key_of(one: Event) -> str:
    return one.extra("key", str, "")


class Reader:
    """A handler. `script` says what a call answers, by the name of any of its events, once for
    each time it is handed over; after that, and for all others, it acknowledges."""

    def __init__(self, script: Mapping[str, Sequence[Said]] | None = None) -> None:
        self.calls: list[Batch] = []
        self.ended = 0
        self.at: list[float] = []
        self._script = {name: list(said) for name, said in (script or {}).items()}
        self._held: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Event()

    async def __call__(self, batch: Batch) -> Outcome | None:
        self.calls.append(batch)
        self.at.append(asyncio.get_running_loop().time())
        self._changed.set()
        try:
            for one in batch.events:
                if held := self._held.get(name_of(one)):
                    await held.wait()
            return self._say(batch)
        finally:
            self.ended += 1
            self._changed.set()

    def _say(self, batch: Batch) -> Outcome | None:
        for one in batch.events:
            said = self._script.get(name_of(one))
            if said:
                answer = said.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return None

    # -- what the case steers -----------------------------------------------------------

    def hold(self, name: str) -> None:
        """A call with this event stands until `release`."""
        self._held[name] = asyncio.Event()

    def release(self, name: str) -> None:
        self._held.pop(name).set()

    # -- what the case sees -------------------------------------------------------------

    @property
    def batches(self) -> list[list[str]]:
        """The names of each call."""
        return [[name_of(one) for one in batch.events] for batch in self.calls]

    @property
    def names(self) -> list[str]:
        return [name for names in self.batches for name in names]

    def headrooms(self, name: str) -> list[int | None]:
        """What the calls said of this event's own headroom."""
        return [
            batch.headrooms[one.id]
            for batch in self.calls
            for one in batch.events
            if name_of(one) == name
        ]

    async def until(self, *names: str) -> None:
        """Calls with all of these were begun, as often as each is named here."""
        begun = [name_of(one) for batch in self.calls for one in batch.events]
        async with _soon(f"{names} came"):
            while not all(begun.count(name) >= names.count(name) for name in names):
                await self._change()
                begun = [name_of(one) for batch in self.calls for one in batch.events]

    async def until_ended(self, number: int) -> None:
        """So many calls have ended."""
        async with _soon(f"{number} ends"):
            while self.ended < number:
                await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class _soon:
    """A deadline that says what it waited for."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._timeout = asyncio.timeout(SOON_S)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._timeout.__aexit__(*raised)  # type: ignore[arg-type]
        except TimeoutError:
            raise AssertionError(f"waited {SOON_S:.0f} s in vain: {self._what}") from None
