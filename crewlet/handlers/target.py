"""`module:function`, resolved when the handler is built: a wrong name is refused, not retried."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from crewlet.errors import ConfigError

HANDLER: Final = "handler python"
"""What a company's file calls the key, unless told otherwise."""


def load(
    target: str, folder: Path | None = None, *, key: str = HANDLER, given: str = "the turn"
) -> Callable[..., Any]:
    """The callable that `target` names. Raises ConfigError with the way out.

    `folder` (where the company file lies) is searched after everything that is installed. `given`
    is the one argument that it is called with.
    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise ConfigError(f"{key}: {target!r} is not of the form 'module:function'")
    found: Any = _module(module_name, target, folder, key)
    for name in path.split("."):
        if not hasattr(found, name):
            raise ConfigError(f"{key}: {target!r}: {module_name} has no {path!r}")
        found = getattr(found, name)
    return checked(found, target, key=key, given=given)


def checked(
    found: Any, target: str, *, key: str = HANDLER, given: str = "the turn"
) -> Callable[..., Any]:
    """`found`, if it can be called with one argument. Raises ConfigError otherwise."""
    if inspect.isclass(found) or not callable(found):
        raise ConfigError(f"{key}: {target!r} is not a function")
    try:
        inspect.signature(found).bind(object())
    except TypeError:
        raise ConfigError(f"{key}: {target!r} must take exactly one argument, {given}") from None
    except ValueError:
        pass  # a builtin without a signature: the first call will tell
    return found  # type: ignore[no-any-return]


def _module(name: str, target: str, folder: Path | None, key: str) -> Any:
    if folder is not None and str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
        importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{key}: {target!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
