"""What can stand at the end of a line: verbs, options, and the names of seats and nodes."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from crewlet.cli.console import HELP, LEAVE, console, find

FRESH_S: Final = 5.0
"""How long names are believed: seats and nodes come and go slowly."""


class Names:
    """The seats and nodes that the node knows, asked for as they are needed."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._known: dict[str, list[str]] = {}
        self._asked_at: float | None = None

    def of(self, kind: str) -> list[str]:
        """Of this kind (seat, node, consumer); none while the node does not answer."""
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at > FRESH_S:
            self._asked_at = now
            self._known = self._ask()
        return self._known.get(kind, [])

    def _ask(self) -> dict[str, list[str]]:
        from actors.admin import AdminClient, CallFailed, NoAnswer, NotRunning

        known: dict[str, list[str]] = {}
        with contextlib.suppress(NotRunning, CallFailed, NoAnswer, OSError):
            for row in AdminClient(self._data).call("names"):
                if isinstance(row, dict):
                    known.setdefault(str(row["kind"]), []).append(str(row["name"]))
        return known


KINDS: Final = {"handle": "seat", "node": "node", "consumer": "consumer"}
"""What the argument of a command stands for, by its name."""


class Verbs(Completer):
    """Completes one line of the shell."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        for word, about, begun in self.proposals(document.text_before_cursor):
            yield Completion(word, start_position=-len(begun), display_meta=about)

    def proposals(self, text: str) -> Iterator[tuple[str, str, str]]:
        """The words that may come, what each is, and how much of it is there already."""
        try:
            words = shlex.split(text)
        except ValueError:
            return  # inside quotes: a text of the operator's own
        begun = words.pop() if words and not text[-1:].isspace() else ""
        for word, about in self._next(words, begun):
            if word.startswith(begun):
                yield word, about, begun

    def _next(self, words: list[str], begun: str) -> Iterable[tuple[str, str]]:
        helping = words[:1] == [HELP]
        command, rest = find(words[1:] if helping else words)
        if isinstance(command, click.Group):
            return [] if rest else _verbs(command, helping=helping)
        if helping:
            return []
        return self._parameters(command, rest, begun)

    def _parameters(
        self, command: click.Command, rest: Iterable[str], begun: str
    ) -> list[tuple[str, str]]:
        given = list(rest)
        if begun.startswith("-"):
            options = [each for each in command.params if isinstance(each, click.Option)]
            return [(each.opts[-1], each.help or "") for each in options]
        if given and given[-1].startswith("-"):
            return self._values(_option(command, given[-1]))
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        at = len(_positional(command, given))
        return self._values(arguments[at] if at < len(arguments) else None)

    def _values(self, parameter: click.Parameter | None) -> list[tuple[str, str]]:
        if parameter is None:
            return []
        if isinstance(parameter.type, click.Choice):
            return [(str(choice), "") for choice in parameter.type.choices]
        kind = "node" if "--on" in parameter.opts else KINDS.get(parameter.name or "", "")
        kind = "seat" if "--yes" in parameter.opts else kind
        return [(name, kind) for name in self._names.of(kind)] if kind else []


def _verbs(group: click.Group, *, helping: bool) -> list[tuple[str, str]]:
    found = [(name, each.get_short_help_str(60)) for name, each in group.commands.items()]
    own = (HELP, *LEAVE) if group is console and not helping else ()
    return [*found, *((word, "") for word in own)]


def _option(command: click.Command, word: str) -> click.Option | None:
    """The option that waits for its value."""
    for each in command.params:
        if isinstance(each, click.Option) and word in each.opts and not each.is_flag:
            return each
    return None


def _positional(command: click.Command, words: Iterable[str]) -> list[str]:
    """The words that are arguments: no options, and no values of options."""
    found: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = _option(command, word) is not None
        else:
            found.append(word)
    return found
