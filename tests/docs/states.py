"""What the drawn pages of machines have in common: walk, arrows and tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

Transition: TypeAlias = tuple[str, str, str]
Found: TypeAlias = dict[Transition, list[str]]

MOST_NAMED = 4


class Walk:
    """Tries every input in every situation that can be got into; what is drawn is what happened.

    `moves` gives an input's name, the machine after it, and the words for its effects; what the
    caller may not hand in is left out of it. `situation` tells two machines apart as far as the
    page is concerned."""

    def __init__(
        self,
        begin: Any,
        moves: Callable[[Any], Iterable[tuple[str, Any, Sequence[str]]]],
        situation: Callable[[Any], Hashable],
        state: Callable[[Any], str],
        most_steps: int,
    ) -> None:
        self.found: Found = {}
        seen = {situation(begin)}
        todo = [begin]
        for _ in range(most_steps):
            reached = []
            for before in todo:
                for name, after, words in moves(before):
                    self._note((state(before), name, state(after)), words)
                    if situation(after) not in seen:
                        seen.add(situation(after))
                        reached.append(after)
            todo = reached
        assert not todo, "there is more to be walked"

    def _note(self, transition: Transition, words: Sequence[str]) -> None:
        noted = self.found.setdefault(transition, [])
        line = " ".join(words) or "-"
        if line not in noted:
            noted.append(line)


def diagram(found: Found, first: str, last: str = "") -> list[str]:
    """One arrow from state to state, named by its inputs."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, name, after in sorted(found):
        if state != after:
            arrows.setdefault((state, after), []).append(name)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    for (state, after), names in arrows.items():
        more = " ..." if len(names) > MOST_NAMED else ""
        lines.append(f"    {state} --> {after}: {', '.join(names[:MOST_NAMED])}{more}")
    return [*lines, *([f"    {last} --> [*]"] if last else []), "```"]


def tables(found: Found, states: Iterable[str]) -> list[str]:
    """What an input can lead to, state by state."""
    lines: list[str] = []
    for state in states:
        rows = sorted((t, words) for t, words in found.items() if t[0] == state)
        lines += [f"## {state}", "", "| input | next | effects, one line a case |"]
        lines += ["| --- | --- | --- |"]
        lines += [f"| {t[1]} | {t[2]} | {'<br>'.join(sorted(words))} |" for t, words in rows]
        lines.append("")
    return lines
