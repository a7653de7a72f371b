"""The reference tables of docs/guide/company.md, as the keys themselves give them."""

from __future__ import annotations

from crewlet.company.key import Key, Section

SHAPES = {
    "line": "text, one line",
    "text": "text",
    "lines": "list of texts",
    "command": "list of texts, or text",
    "filters": "names to texts",
    "secret": "reference",
    "integer": "whole number",
    "number": "number",
    "flag": "`true` or `false`",
    "table": "keys",
    "named": "names to keys",
    "tables": "list of keys",
}


def table(keys: Section) -> str:
    """A Markdown table of one section."""
    head = "| key | value | default | example | what it is |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(_row(name, key) for name, key in keys.items())


def _row(name: str, key: Key) -> str:
    names = " or ".join(f"`{word}`" for word in (name, *key.spellings))
    default = "required" if key.required else key.default or "none"
    example = f"`{key.example}`" if key.example else f"[below](#{key.of})"
    return f"| {names} | {_value(key)} | {default} | {example} | {key.about} |\n"


def _value(key: Key) -> str:
    if key.choices:
        either = " or ".join(f"`{choice}`" for choice in key.choices)
        return f"list of {either}" if key.shape == "lines" else either
    if key.minimum is None:
        return SHAPES[key.shape]
    return f"{SHAPES[key.shape]}, {key.minimum:g} to {key.maximum:.10g}"
