"""Who a Markdown text calls by name: `@login`, `@login[bot]` and `@org/team`.

Not mentions, as on the vendor's own pages: code spans and blocks, quoted lines, HTML comments,
`<pre>` and `<code>`, URLs, e-mail addresses. Every step is linear in the text: a body is up to
6 MiB and the reader runs on the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

MAX_MENTIONS: Final = 50
"""Names read of one text: GitHub itself notifies 50 people of a comment at most."""

MAX_SCANNED: Final = 256 * 1024
"""Characters read of one text: four times what GitHub lets anybody write in one comment."""

_MENTION: Final = re.compile(
    r"""
    (?<![A-Za-z0-9_@])                     # someone@example.com
    @(?P<login>[A-Za-z0-9](?:[A-Za-z0-9_]|-(?=[A-Za-z0-9]))*+)
    (?:(?P<bot>\[bot\])|/(?P<team>[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9]))*+))?+
    (?!@|\.[A-Za-z0-9])                    # @user@host, @example.com
    """,
    re.VERBOSE | re.ASCII,
)
_MAX_LOGIN: Final = 39
_MAX_TEAM: Final = 255

_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_QUOTE: Final = re.compile(r" {0,3}>")
_INDENTED: Final = re.compile(r" {4}| {0,3}\t")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_BACKTICKS: Final = re.compile(r"`+")
_URL: Final = re.compile(r"\bhttps?://\S*", re.IGNORECASE)
_HIDDEN: Final = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<pre\b", re.IGNORECASE), re.compile(r"</pre\s{0,9}>", re.IGNORECASE)),
    (re.compile(r"<code\b", re.IGNORECASE), re.compile(r"</code\s{0,9}>", re.IGNORECASE)),
)


Names: TypeAlias = Callable[[str], Iterable[str]]
"""How a vendor spells a call by name: the names in a text without anything that only shows."""


def mentions(text: str, names: Names | None = None) -> tuple[str, ...]:
    """The names in their order, each once (`A` and `a` are one), teams as `team:ORG/NAME`.

    As GitHub spells them, unless `names` reads another vendor's.
    """
    if "@" not in text:
        return ()
    found: dict[str, str] = {}
    for name in (names or _names)(_spoken(text[:MAX_SCANNED])):
        found.setdefault(name.casefold(), name)
        if len(found) == MAX_MENTIONS:
            break
    return tuple(found.values())


def added(before: str, after: str, names: Names | None = None) -> tuple[str, ...]:
    """The names that an edit brought in: only these are newly called."""
    known = {name.casefold() for name in mentions(before, names)}
    return tuple(name for name in mentions(after, names) if name.casefold() not in known)


def _names(spoken: str) -> Iterator[str]:
    for match in _MENTION.finditer(spoken):
        login, team = match["login"], match["team"]
        if len(login) > _MAX_LOGIN or len(team or "") > _MAX_TEAM:
            continue
        yield f"team:{login}/{team}" if team else login + (match["bot"] or "")


def _spoken(text: str) -> str:
    """The text without everything that only shows or quotes."""
    paragraphs = "\n".join(_prose(text.splitlines())).split("\n\n")
    spoken = "\n\n".join(_without_code_spans(paragraph) for paragraph in paragraphs)
    for opening, closing in _HIDDEN:
        spoken = without_between(spoken, opening, closing)
    return _URL.sub(" ", spoken)


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines outside fences, quotes and indented code; a blank one in place of each cut."""
    fence = ""
    in_list = False
    after_blank = True
    for line in lines:
        mark = _FENCE.fullmatch(line)
        if fence:
            fence = "" if mark and _closes(fence, mark) else fence
            after_blank = True
            yield ""
        elif mark and not (mark["mark"][0] == "`" and "`" in mark["rest"]):
            fence, after_blank = mark["mark"], True
            yield ""
        elif _QUOTE.match(line):
            after_blank = False
            yield ""
        elif after_blank and not in_list and _INDENTED.match(line):
            yield ""  # after_blank stays: a block goes on until a line that is not indented
        else:
            in_list = _LIST_ITEM.match(line) is not None or (
                in_list and (not after_blank or not line.strip() or line[0].isspace())
            )
            after_blank = not line.strip()
            yield line.rstrip()


def _closes(fence: str, mark: re.Match[str]) -> bool:
    return mark["mark"].startswith(fence) and not mark["rest"].strip()


def _without_code_spans(paragraph: str) -> str:
    """Blank each span between two runs of equally many backticks."""
    runs = [match.span() for match in _BACKTICKS.finditer(paragraph)]
    closer = _closers(runs)
    kept: list[str] = []
    at = index = 0
    while index < len(runs):
        start = runs[index][0]
        partner = closer[index]
        if partner is None or (start and paragraph[start - 1] == "\\"):
            index += 1
            continue
        kept += (paragraph[at:start], " ")
        at = runs[partner][1]
        index = partner + 1
    return "".join([*kept, paragraph[at:]])


def _closers(runs: list[tuple[int, int]]) -> list[int | None]:
    """For each run the next one of its length: one pass from the end, never a search."""
    latest: dict[int, int] = {}
    closer: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        closer[index] = latest.get(length)
        latest[length] = index
    return closer


def without_between(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Blank from each opening to its closing; an opening that nothing closes hides nothing."""
    kept: list[str] = []
    at = 0
    while start := opening.search(text, at):
        end = closing.search(text, start.end())
        if end is None:
            break
        kept += (text[at : start.start()], " ")
        at = end.end()
    return "".join([*kept, text[at:]])
