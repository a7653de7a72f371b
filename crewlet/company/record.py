"""A section of a file, read: unknown keys refused, values converted, variables filled in.

A value that is wrong is reported and left out; what is built from the rest is thrown away in
the end, but its own problems are found in the same run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from crewlet.company import scalars
from crewlet.company.environment import Missing, expand, has_reference
from crewlet.company.key import Key, Section
from crewlet.company.problems import Mark, Report, nearest, shown
from crewlet.company.secret import Secret
from crewlet.company.yaml import Items, Node, Table, Text

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_FILTER: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")

Filters = Mapping[str, str]


def is_filter(name: str) -> bool:
    """What a field of an event, or a label of a node, may be called."""
    return _FILTER.fullmatch(name) is not None


class Record:
    """The values of one mapping that could be read, by canonical key, with their places."""

    def __init__(self, mark: Mark, path: str) -> None:
        self.mark = mark
        self.path = path
        self.values: dict[str, object] = {}
        self.marks: dict[str, Mark] = {}
        self.typed: dict[str, str] = {}

    def has(self, key: str) -> bool:
        """Whether the key stands in the file, readable or not."""
        return key in self.marks

    def line(self, key: str) -> str:
        value = self.values.get(key, "")
        return value if isinstance(value, str) else ""

    def lines(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, ())
        return value if isinstance(value, tuple) else ()

    def number(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        return value if isinstance(value, int | float) else default

    def flag(self, key: str, default: bool = False) -> bool:
        return self.values.get(key, default) is True

    def secret(self, key: str) -> Secret | None:
        value = self.values.get(key)
        return value if isinstance(value, Secret) else None

    def filters(self, key: str) -> Filters:
        value = self.values.get(key)
        return value if isinstance(value, dict) else {}

    def record(self, key: str) -> Record | None:
        value = self.values.get(key)
        return value if isinstance(value, Record) else None

    def records(self, key: str) -> list[Record]:
        value = self.values.get(key)
        return value if isinstance(value, list) else []

    def named(self, key: str) -> Mapping[str, Record]:
        value = self.values.get(key)
        return value if isinstance(value, _Named) else {}

    def at(self, key: str) -> tuple[Mark, str]:
        """Where the key's value stands, for a report; the record itself where it is missing."""
        return self.marks.get(key, self.mark), joined(self.path, key)

    def written(self, key: str) -> str:
        """The value as the person typed it, references unfilled: fit for a message."""
        return shown(self.typed.get(key, ""))


class _Named(dict[str, Record]):
    """Records under names of one's own."""


class Reader:
    """Reads nodes into records after a table of sections."""

    def __init__(
        self, sections: Mapping[str, Section], env: Mapping[str, str], report: Report
    ) -> None:
        self._sections = sections
        self._env = env
        self._report = report

    def record(self, table: Table, section: str, path: str = "") -> Record:
        keys = self._sections[section]
        record = Record(table.mark, path)
        for word, node in table.entries:
            name = _canonical(word.text, keys)
            if name is None:
                self._unknown(word, section, path)
            elif record.has(name):
                self._report.add(
                    word.mark,
                    joined(path, word.text),
                    f"this is another spelling of {name!r}, which stands here too; keep one",
                )
            else:
                self._entry(record, name, keys[name], node)
        for name, key in keys.items():
            if key.required and not record.has(name):
                self._report.add(
                    table.mark, path, f"the key {name!r} is missing" + _example(name, key)
                )
        return record

    def _unknown(self, word: Text, section: str, path: str) -> None:
        keys = self._sections[section]
        known = [*keys, *(each for key in keys.values() for each in key.spellings)]
        hint = nearest(word.text, known) or f"; known here: {', '.join(keys)}"
        if has_reference(word.text):
            hint = "; variables are filled in in values, never in keys"
        self._report.add(
            word.mark, joined(path, _segment(word.text)), f"unknown key {shown(word.text)}{hint}"
        )

    def _entry(self, record: Record, name: str, key: Key, node: Node) -> None:
        record.marks[name] = node.mark
        path = joined(record.path, name)
        if isinstance(node, Text):
            record.typed[name] = node.text
            if node.plain and not node.text and key.shape in _CONTAINERS:
                if not key.required:
                    return  # everything below it is commented out
            elif key.shape == "command":
                self._split(record, name, node)
                return
        value = self._value(node, key, path)
        if value is not None:
            record.values[name] = value

    def _value(self, node: Node, key: Key, path: str) -> object | None:
        match key.shape, node:
            case "table", Table():
                return self.record(node, key.of, path)
            case "tables", Items():
                return self._tables(node, key, path)
            case "named", Table():
                return self._named(node, key, path)
            case (("lines" | "command"), Items()):
                return self._lines(node, path, key.choices)
            case "filters", Table():
                return self._filters(node, path)
            case shape, Text() if shape not in _CONTAINERS:
                return self._scalar(node, key, path)
        self._report.add(node.mark, path, f"{_wanted(key)} is needed here, not {_kind(node)}")
        return None

    def _tables(self, node: Items, key: Key, path: str) -> list[Record]:
        records = []
        for index, item in enumerate(node.items):
            inner = f"{path}[{index}]"
            if isinstance(item, Table):
                records.append(self.record(item, key.of, inner))
            else:
                self._report.add(
                    item.mark, inner, f"a mapping of keys is needed here, not {_kind(item)}"
                )
        return records

    def _named(self, node: Table, key: Key, path: str) -> _Named:
        named = _Named()
        for word, item in node.entries:
            inner = joined(path, _segment(word.text))
            if _NAME.fullmatch(word.text) is None:
                self._report.add(
                    word.mark,
                    inner,
                    f"{shown(word.text)} is no name: small letters, digits, '-' and '_'",
                )
            elif isinstance(item, Table):
                named[word.text] = self.record(item, key.of, inner)
            else:
                self._report.add(
                    item.mark, inner, f"a mapping of keys is needed here, not {_kind(item)}"
                )
        return named

    def _lines(self, node: Items, path: str, choices: tuple[str, ...] = ()) -> tuple[str, ...]:
        item_key = Key(shape="line", about="", choices=choices) if choices else _TEXT
        values = [
            self._value(item, item_key, f"{path}[{index}]") for index, item in enumerate(node.items)
        ]
        return tuple(value for value in values if isinstance(value, str))

    def _filters(self, node: Table, path: str) -> Filters:
        filters: dict[str, str] = {}
        for word, value in node.entries:
            inner = joined(path, _segment(word.text))
            if not is_filter(word.text):
                self._report.add(
                    word.mark, inner, f"{shown(word.text)} is no name: small letters, digits, '_'"
                )
            elif isinstance(text := self._value(value, _LINE, inner), str):
                filters[word.text] = text
        return filters

    def _split(self, record: Record, name: str, node: Text) -> None:
        """A command in one text: words first, variables after, so that no value is two words."""
        path = joined(record.path, name)
        if fault := _unset(node):
            self._report.add(node.mark, path, fault)
            return
        try:
            words = shlex.split(node.text)
        except ValueError:
            self._report.add(node.mark, path, "a quote in the command has no end; write a list")
            return
        items = tuple(Text(word, False, node.mark) for word in words)
        record.values[name] = self._lines(Items(items, node.mark), path)

    def _scalar(self, node: Text, key: Key, path: str) -> object | None:
        fault = _unset(node)
        if not fault:
            try:
                value = expand(node.text, self._env, secret=key.shape == "secret")
            except Missing as missing:
                fault = str(missing)
            else:
                converted = _converted(value, node, key)
                if not isinstance(converted, _Fault):
                    return converted
                fault = converted.message
        self._report.add(node.mark, path, fault)
        return None


class _Fault:
    def __init__(self, message: str) -> None:
        self.message = message


_LINE: Final = Key(shape="line", about="")
_TEXT: Final = Key(shape="text", about="")
_CONTAINERS: Final = frozenset({"table", "named", "tables", "lines", "command", "filters"})


def _converted(value: str, node: Text, key: Key) -> object:
    match key.shape:
        case "secret":
            return _secret(value, node)
        case "integer" | "number":
            number = scalars.number(value, key)
            return _Fault(_misread(node, scalars.bounds(key))) if number is None else number
        case "flag":
            flag = scalars.flag(value)
            return _Fault(_misread(node, "true or false")) if flag is None else flag
    if key.may_be_empty and not node.text:
        return ""
    fault = scalars.text_fault(value) if key.shape == "text" else scalars.line_fault(value)
    if fault:
        return _Fault(f"the text {shown(node.text)} {fault}" if node.text else "the text is empty")
    if key.choices and value not in key.choices:
        return _Fault(_misread(node, " or ".join(key.choices)) + nearest(value, key.choices))
    return value


def _secret(value: str, node: Text) -> object:
    if not has_reference(node.text):
        return _Fault(
            "a secret is not written into the file; put it into an environment variable and "
            "write ${NAME} here"
        )
    return Secret(value)


def _misread(node: Text, wanted: str) -> str:
    return f"{wanted} is needed here; read as the text {shown(node.text)}"


def _unset(node: Text) -> str:
    if not node.plain:
        return ""
    if not node.text:
        return "the key has no value; give it one, or leave the key out"
    if node.text in scalars.NOTHING:
        return (
            f"{node.text} is read as 'no value' by YAML; quote it ('{node.text}') if it is text, "
            "or leave the key out"
        )
    return ""


def _canonical(word: str, keys: Section) -> str | None:
    if word in keys:
        return word
    return next((name for name, key in keys.items() if word in key.spellings), None)


def _kind(node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Table):
        return "a mapping"
    if node.plain and not node.text:
        return "nothing"
    # What was meant as a secret may stand one level too high: such a text is not repeated.
    return "a text"


def _wanted(key: Key) -> str:
    nouns = {
        "table": "a mapping of keys",
        "named": "a mapping of names",
        "filters": "a mapping of keys",
        "tables": "a list (`- ...`)",
        "lines": "a list (`- ...`)",
        "command": "a list (`- ...`)",
        "integer": scalars.bounds(key),
        "number": scalars.bounds(key),
        "flag": "true or false",
        "secret": "a reference like ${NAME}",
    }
    return nouns.get(key.shape, "text")


def _example(name: str, key: Key) -> str:
    return f"; for example `{name}: {key.example}`" if key.example else ""


def _segment(word: str) -> str:
    return word if re.fullmatch(r"[\w-]{1,40}", word) else shown(word)


def joined(path: str, key: str) -> str:
    """`roles[0]` and `handle` make `roles[0].handle`."""
    return f"{path}.{key}" if path else key
