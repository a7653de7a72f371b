"""Virtual time, as `actors.system` has it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0) -> T:
    """Run `main()` to its end on a loop whose time passes only when nobody is ready.

    `seed` decides the order of whatever is ready at one instant: equal seeds, equal runs.
    """
    run = importlib.import_module("actors.system").run_virtual
    return cast(T, run(main, seed=seed))
