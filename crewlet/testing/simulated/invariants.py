"""An embedder's own invariants: asked at every record, and heard wherever they raise."""

from __future__ import annotations

import traceback
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, cast

from actors.simulation.fleet import Fleet
from actors.simulation.history import Record, told

Invariant: TypeAlias = Callable[[Record], str | None]
"""Called with each record of the history as it is written; a sentence says what it broke, and so
does an assertion that fails. The last record is `over`: what has to be true in the end is judged
then."""


class Invariants:
    """Of one run, by name. `error` is what one of them raised that is no judgement: it ends the
    run. Records are written in the middle of turns and of answers of the broker, whose own code
    would catch it there."""

    def __init__(self, named: Mapping[str, Invariant]) -> None:
        self._named = named
        self.error: BaseException | None = None

    def listen(self, fleet: Fleet) -> None:
        for name, invariant in self._named.items():
            fleet.history.hear_all(partial(self._ask, fleet, name, invariant))

    def _ask(self, fleet: Fleet, name: str, invariant: Invariant, record: Record) -> None:
        if self.error is not None:
            return
        try:
            sentence = _judged(name, invariant, record)
        except (KeyboardInterrupt, SystemExit, CancelledError):
            raise
        except BaseException as error:  # what `pytest.fail` raises is no Exception
            error.add_note(f"in the invariant {name!r}, on seed {fleet.plan.seed}: {told(record)}")
            self.error = error
            fleet.world.stop()
            return
        if sentence:
            fleet.fail(name, sentence)


def _judged(name: str, invariant: Invariant, record: Record) -> str | None:
    """Its sentence. Raises what it raises, and TypeError where it answers with something else."""
    try:
        sentence = cast(object, invariant(record))
    except AssertionError as error:
        return str(error) or _line(error)
    if sentence is not None and not isinstance(sentence, str):
        raise TypeError(f"{name!r} has to say None or a sentence, not {sentence!r}")
    return sentence


def _line(error: AssertionError) -> str:
    """Where it failed, which says what was expected where nothing else does."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return frame.line or f"{frame.name} failed an assertion"
