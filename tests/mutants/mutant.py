"""A planted fault: what it imitates, which promise it breaks, and which cases must see it.

The product has no switches for this. A fault is a function that replaces a piece of the product
by a wrong one for the length of a test run, and refuses to where there is nothing to replace.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

VARIABLE: Final = "CREWLET_MUTANT"

HERE: Final = Path(__file__).parent


class Stale(Exception):
    """What the fault replaces is not there any more, or is like this already."""


class Patches:
    """Replaces pieces of the product, and notes where a replacement fell over by itself: what
    that breaks, no case has caught."""

    def __init__(self) -> None:
        self.number = 0
        self.broken: list[str] = []
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """An attribute of a class or module becomes this."""
        # A class's own, so that a method which moved to a base is noticed.
        there = vars(owner) if inspect.isclass(owner) or inspect.ismodule(owner) else {}
        place = f"{getattr(owner, '__name__', owner)}.{name}"
        if name not in there:
            raise Stale(f"{place} does not exist")
        old = there[name]
        setattr(owner, name, self._checked(place, old, value))
        self._undo.append(lambda: setattr(owner, name, old))

    def handler(self, actor: Any, name: str, value: Any) -> None:
        """A message handler of an actor class: found by the message's type, in it and below."""
        old = vars(actor).get(name)
        self.set(actor, name, value)
        for cls in (actor, *actor.__subclasses__()):
            for message in [kind for kind, method in cls.handlers.items() if method is old]:
                self.item(cls.handlers, message, value)

    def item(self, table: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """An entry of a table becomes this."""
        place = f"the table's {key!r}"
        if key not in table:
            raise Stale(f"{place} does not exist")
        old = table[key]
        table[key] = self._checked(place, old, value)
        self._undo.append(lambda: table.__setitem__(key, old))

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _checked(self, place: str, old: Any, value: Any) -> Any:
        if type(old) is not type(value):
            raise Stale(f"{place} was a {type(old).__name__}, the fault is another thing")
        if callable(old) and _shape(old) != _shape(value):
            raise Stale(f"{place} takes other arguments now: {inspect.signature(old)}")
        if old is value or (not callable(old) and old == value):
            raise Stale(f"{place} is so already")
        self.number += 1
        return self._watched(value) if inspect.isfunction(value) else value

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*given: Any, **named: Any) -> Any:
                try:
                    return await function(*given, **named)
                except Exception as error:
                    self._note(error)
                    raise

            return waiting

        @functools.wraps(function)
        def calling(*given: Any, **named: Any) -> Any:
            try:
                return function(*given, **named)
            except Exception as error:
                self._note(error)
                raise

        return calling

    def _note(self, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        if frames and HERE in Path(frames[-1].filename).parents:
            self.broken.append(f"{frames[-1].name}: {type(error).__name__}: {error}")


Plant = Callable[[Patches], None]


class Mutant(Struct, frozen=True):
    """`lines` are those of docs/contract.md that it breaks; `cases` the tests that each must
    fail because of it; `tier` says which part of the product it is planted in. `note` is what was
    measured of it."""

    name: str
    tier: str
    lines: tuple[int, ...]
    cases: tuple[str, ...]
    imitates: str
    plant: Plant
    note: str = ""

    def apply(self) -> Patches:
        """Raises Stale where there was nothing to replace; then nothing stays replaced."""
        patches = Patches()
        try:
            self.plant(patches)
            if not patches.number:
                raise Stale(f"{self.name} replaces nothing")
        except BaseException:
            patches.undo()
            raise
        return patches


class Tier:
    """The faults of one part of the product, in the order in which they are written down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mutants: list[Mutant] = []

    def fault(self, *cases: str, lines: Sequence[int], note: str = "") -> Callable[[Plant], Plant]:
        """The function's name is the fault's, its docstring says which bug it imitates."""

        def add(plant: Plant) -> Plant:
            name = plant.__name__.replace("_", "-")
            imitates = " ".join(inspect.getdoc(plant).split()) if plant.__doc__ else ""
            mutant = Mutant(name, self.name, tuple(lines), cases, imitates, plant, note)
            self.mutants.append(mutant)
            return plant

        return add


def _shape(function: Any) -> tuple[int, tuple[str, ...]]:
    """How many arguments go by their place, and the names of those that do not."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0, ()
    named = tuple(sorted(one.name for one in parameters if one.kind is one.KEYWORD_ONLY))
    return len(parameters) - len(named), named
