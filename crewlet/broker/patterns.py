"""Patterns over topics: `*` is one segment, `>` at the end is all that follow."""

from __future__ import annotations

from crewlet import topics


def matches(pattern: str, topic: str) -> bool:
    """Whether the topic lies in the pattern. `>` stands for at least one segment."""
    wanted, have = pattern.split("."), topic.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(have) <= len(wanted):
            return False
        have = have[: len(wanted)]
    return len(wanted) == len(have) and all(
        want in ("*", segment) for want, segment in zip(wanted, have, strict=True)
    )


def checked_pattern(pattern: str) -> str:
    """The pattern itself; ValueError where it is none: an empty segment, a `>` not at the end."""
    segments = pattern.split(".")
    body = segments[:-1] if segments[-1] == ">" else segments
    literal = ".".join("x" if segment == "*" else segment for segment in body)
    if body and not topics.is_subject(literal):
        raise ValueError(f"{pattern!r} is no pattern: empty segment, white space or a stray '>'")
    return pattern


def namespace_of(pattern: str) -> str:
    """The one namespace that the pattern lies in; ValueError where it spans several."""
    segments = checked_pattern(pattern).split(".")
    head = segments[:2] if segments[0] == "crewlet" else segments[:1]
    if "*" in head or ">" in head:
        raise ValueError(f"{pattern!r} spans every namespace: name the one that you want")
    return topics.namespace(".".join([*head, "x"]))
