"""An event that nobody has opened yet: what a consumer needs of the mail it collects.

To read all of an event costs three times as much as to read its envelope (docs/benchmarks.md),
and what was collected for a turn may be handed back, or go on to another, unopened.
"""

from __future__ import annotations

from typing import Final

import msgspec

from crewlet.events.envelope import Event, at, opened, read_wire

_text: Final = msgspec.json.Decoder(str)


class Sealed:
    """Bytes that are an event, of which the envelope is read. Raises CorruptEvent on others."""

    __slots__ = ("_data", "_event", "_wire")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._wire = read_wire(data)
        self._event: Event | None = None

    @property
    def id(self) -> str:
        return self._wire.id

    @property
    def timestamp(self) -> float:
        """Seconds since the epoch."""
        return at(self._wire).timestamp()

    def text(self, key: str) -> str:
        """A text of the payload; empty where it is missing or is none."""
        value = (self._wire.payload or {}).get(key)
        if value is None:
            return ""
        try:
            return _text.decode(value)
        except msgspec.MsgspecError:
            return ""

    def open(self) -> Event:
        """All of it; read once, for whoever asks first."""
        if self._event is None:
            self._event = opened(self._wire, self._data)
        return self._event
