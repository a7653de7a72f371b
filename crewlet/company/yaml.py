"""YAML as text with positions: no implicit types, no tags, no merge keys, every size bounded.

The usual loaders turn `No`, `on`, `007`, `12:30` and a date into other things before anybody
can ask what was meant. Here a scalar is the text that the person typed, and the reader of a
field decides what it is. The tree is built from the parser's events, so that depth and size
are known before anything is built: aliases are shared, and counted as if they were copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn, Protocol, TypeAlias

import yaml
from msgspec import Struct
from yaml.events import CollectionStartEvent, NodeEvent

from crewlet.company.problems import Mark, Report, shown

MAX_BYTES: Final = 1024 * 1024
MAX_VALUES: Final = 10_000
"""Values in one file, aliases counted as often as they are used (keys are not counted)."""

MAX_DEPTH: Final = 50


class Text(Struct, frozen=True):
    """A scalar exactly as typed. `plain` tells an unquoted word from a quoted one."""

    text: str
    plain: bool
    mark: Mark


class Items(Struct, frozen=True):
    """A list."""

    items: tuple[Node, ...]
    mark: Mark


class Table(Struct, frozen=True):
    """A mapping. Keys are text, each there once; in the order of the file."""

    entries: tuple[tuple[Text, Node], ...]
    mark: Mark


Node: TypeAlias = Text | Items | Table


class _Sized(Struct, frozen=True):
    """A node with what a copy of it would cost: values and depth."""

    node: Node
    values: int
    depth: int


class _Position(Protocol):
    line: int
    column: int


class _Refused(Exception):
    """The structure cannot be read any further; the report says why."""


def read_yaml(source: str | bytes, report: Report, *, may_be_empty: bool = False) -> Table | None:
    """The file's mapping, or None where the report says why there is none to read."""
    text = _decoded(source, report)
    if text is None:
        return None
    try:
        return _Builder(text, report).document(may_be_empty)
    except _Refused:
        return None
    except yaml.MarkedYAMLError as error:
        report.add(_mark(error.problem_mark or error.context_mark), "", _sentence(error))
    except yaml.reader.ReaderError as error:
        report.add(_mark_at(text, error.position), "", _bad_character(ord(text[error.position])))
    except (yaml.YAMLError, ValueError, OverflowError, IndexError, RecursionError) as error:
        # The scanner converts escapes and version numbers without asking whether it can.
        report.add(Mark(1, 1), "", f"this is not readable as YAML ({type(error).__name__})")
    return None


def _decoded(source: str | bytes, report: Report) -> str | None:
    raw = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(raw) > MAX_BYTES:
        report.add(Mark(), "", f"the file has {len(raw):,} bytes; at most {MAX_BYTES:,} are read")
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        report.add(Mark(line, column), "", "the file is no UTF-8 text; save it as UTF-8")
        return None
    return text.removeprefix("\ufeff")


class _Builder:
    """One pass over the parser's events. Recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str, report: Report) -> None:
        self._loader = yaml.SafeLoader(text)
        self._report = report
        self._anchors: dict[str, _Sized] = {}
        self._values = 0

    def document(self, may_be_empty: bool) -> Table:
        top: Node | None = None
        for event in self._events():
            if isinstance(event, yaml.DocumentStartEvent):
                if top is not None:
                    self._refuse(event, "a second document starts here; a file holds one")
                top = self._node(self._next(), 1).node
        if top is None or (isinstance(top, Text) and top.plain and not top.text):
            if may_be_empty:
                return Table((), Mark(1, 1))
            self._report.add(Mark(1, 1), "", "the file is empty")
            raise _Refused
        if not isinstance(top, Table):
            kind = "a list" if isinstance(top, Items) else "a text"
            self._report.add(top.mark, "", f"the file must be a mapping (`key: value`), not {kind}")
            raise _Refused
        return top

    def _events(self) -> Iterator[yaml.Event]:
        while self._loader.check_event():
            yield self._next()

    def _next(self) -> yaml.Event:
        event: yaml.Event = self._loader.get_event()  # type: ignore[no-untyped-call]
        return event

    def _node(self, event: yaml.Event, depth: int) -> _Sized:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._check_tag(event)
        self._count(event, 1)
        if depth > MAX_DEPTH:
            self._refuse(event, f"the nesting is deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.ScalarEvent):
            made = _Sized(_text(event), 1, 1)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self._items(event, depth)
        else:
            made = self._table(event, depth)
        self._remember(event, made)
        return made

    def _remember(self, event: yaml.Event, made: _Sized) -> None:
        if isinstance(event, NodeEvent) and event.anchor:
            self._anchors[event.anchor] = made

    def _items(self, start: yaml.Event, depth: int) -> _Sized:
        made: list[_Sized] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            made.append(self._node(event, depth + 1))
        return _sized(Items(tuple(each.node for each in made), _place(start)), made)

    def _table(self, start: yaml.Event, depth: int) -> _Sized:
        made: list[_Sized] = []
        entries: dict[str, tuple[Text, Node]] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event)
            value = self._node(self._next(), depth + 1)
            made.append(value)
            if key.text in entries:
                first = entries[key.text][0].mark.line
                self._report.add(
                    key.mark,
                    "",
                    f"the key {shown(key.text)} stands here twice, first on line {first}",
                )
            else:
                entries[key.text] = (key, value.node)
        return _sized(Table(tuple(entries.values()), _place(start)), made)

    def _key(self, event: yaml.Event) -> Text:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key must be a plain word, not a list, a mapping or an alias")
        self._check_tag(event)
        self._remember(event, _Sized(_text(event), 1, 1))
        if event.value == "<<" and event.style is None:
            self._refuse(event, "merge keys (`<<`) are not read; write the keys out")
        return _text(event)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Sized:
        name = event.anchor or ""
        target = self._anchors.get(name)
        if target is None:
            self._refuse(event, f"the alias {shown('*' + name)} has no anchor that ended before it")
        self._count(event, target.values)
        if depth + target.depth - 1 > MAX_DEPTH:
            self._refuse(event, f"the nesting is deeper than {MAX_DEPTH} levels")
        return target

    def _count(self, event: yaml.Event, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            self._refuse(
                event, f"the file holds more than {MAX_VALUES:,} values, aliases written out"
            )

    def _check_tag(self, event: yaml.Event) -> None:
        tag = event.tag if isinstance(event, yaml.ScalarEvent | CollectionStartEvent) else None
        if tag is not None:
            self._refuse(event, f"the tag {shown(tag)} is not read; quote the value if it is text")

    def _refuse(self, event: yaml.Event, message: str) -> NoReturn:
        self._report.add(_place(event), "", message)
        raise _Refused


def _sized(node: Node, inside: list[_Sized]) -> _Sized:
    return _Sized(
        node,
        1 + sum(each.values for each in inside),
        1 + max((each.depth for each in inside), default=0),
    )


def _text(event: yaml.ScalarEvent) -> Text:
    return Text(event.value, event.style is None, _place(event))


def _place(event: yaml.Event) -> Mark:
    return _mark(event.start_mark)


def _mark(mark: _Position | None) -> Mark:
    return Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)


def _mark_at(text: str, index: int) -> Mark:
    line = text.count("\n", 0, index) + 1
    return Mark(line, index - (text.rfind("\n", 0, index) + 1) + 1)


def _sentence(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "the parser gave up"
    if "'\\t'" in problem:
        return "a tab stands where YAML allows only spaces"
    if "could not find expected ':'" in problem or "mapping values are not allowed" in problem:
        return f"this is no YAML: {problem}; a value that holds ': ' or starts oddly needs quotes"
    return f"this is no YAML: {problem}"


def _bad_character(code: int) -> str:
    return f"the character U+{code:04X} may not stand in YAML; write it as an escape, or drop it"
