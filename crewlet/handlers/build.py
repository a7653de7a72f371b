"""From a company's words to a handler; whatever can be seen to be wrong is refused here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from crewlet.errors import ConfigError
from crewlet.handlers.callable import CallableHandler
from crewlet.handlers.command import CommandHandler
from crewlet.handlers.handler import Handler, HandlerSpec, OnOverdue, ignore_overdue
from crewlet.handlers.program import checked_program
from crewlet.handlers.strays import Strays
from crewlet.handlers.target import checked, load


def build_handler(
    spec: HandlerSpec,
    *,
    on_overdue: OnOverdue = ignore_overdue,
    folder: Path | None = None,
    secrets: Collection[str] = (),
    strays: Strays | None = None,
) -> Handler:
    """The handler that `spec` names. Raises ConfigError, with the way out.

    `folder` is where the company file lies: modules are looked for there too, and commands
    run there; without it, in the node's working directory. `secrets` are values that no
    command may find in its environment. `strays` is the node's one list of bodies that outlived
    their turns.
    """
    if sum(map(bool, (spec.python, spec.command, spec.openai))) != 1:
        raise ConfigError("a handler has one of 'python', 'command' and 'openai'")
    if spec.openai:
        # Loaded where one is wanted: an HTTP client is slow to import.
        from crewlet.handlers.openai import OpenAi

        return CallableHandler(OpenAi(spec.openai), spec.timeout_s, on_overdue, strays)
    if spec.python:
        return CallableHandler(load(spec.python, folder), spec.timeout_s, on_overdue, strays)
    checked_program(spec.command, folder)
    return CommandHandler(spec.command, spec.timeout_s, on_overdue, folder, secrets)


def wrap(
    function: Callable[..., Any],
    timeout_s: float = 0,
    *,
    on_overdue: OnOverdue = ignore_overdue,
    strays: Strays | None = None,
) -> Handler:
    """A handler of a callable that an embedder holds, sync or async. 0 s is no timeout."""
    name = inspect.unwrap(function).__qualname__ if inspect.isroutine(function) else repr(function)
    return CallableHandler(checked(function, name), timeout_s, on_overdue, strays)
