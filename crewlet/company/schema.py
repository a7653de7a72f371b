"""The JSON schemas that editors check the two files with (draft-07, the one they all know)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.company.key import Key, Section
from crewlet.company.keys import COMPANY_SECTIONS
from crewlet.company.node_file import NODE_SECTIONS

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_REFERENCE: Final = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
# Editors read `007` as a number and `yes` as a boolean; the reader takes both as typed.
_TYPED: Final = {"type": ["string", "number", "boolean"]}

Schema = dict[str, Any]


def company_schema() -> Schema:
    """What a company file may hold."""
    return _schema(COMPANY_SECTIONS, "company", "A crewlet company")


def node_schema() -> Schema:
    """What a node file may hold."""
    return _schema(NODE_SECTIONS, "node file", "The settings of a crewlet node")


def _schema(sections: Mapping[str, Section], top: str, title: str) -> Schema:
    inner = {name: _section(keys) for name, keys in sections.items() if name != top}
    _exactly_one_handler(inner)
    return {"$schema": _DRAFT, "title": title, **_section(sections[top]), "definitions": inner}


def _section(keys: Section) -> Schema:
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            spelling: _described(key)
            for name, key in keys.items()
            for spelling in (name, *key.spellings)
        },
    }
    required = [name for name, key in keys.items() if key.required and not key.spellings]
    either = [
        {"oneOf": [{"required": [word]} for word in (name, *key.spellings)]}
        for name, key in keys.items()
        if key.required and key.spellings
    ]
    return (
        schema
        | ({"required": required} if required else {})
        | ({"allOf": either} if either else {})
    )


def _exactly_one_handler(definitions: Schema) -> None:
    if "handler" in definitions:
        definitions["handler"]["oneOf"] = [
            {"required": [kind]} for kind in ("python", "command", "openai")
        ]


def _described(key: Key) -> Schema:
    about = key.about + (f" Default: {key.default}." if key.default else "")
    # Beside a `$ref` draft-07 ignores everything, so the reference goes one level in.
    return {"description": about, **_value(key)}


def _value(key: Key) -> Schema:
    match key.shape:
        case "table":
            return {"allOf": [{"$ref": f"#/definitions/{key.of}"}]}
        case "tables":
            return {"type": "array", "items": {"$ref": f"#/definitions/{key.of}"}}
        case "named":
            return {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
                "additionalProperties": {"$ref": f"#/definitions/{key.of}"},
            }
        case "lines":
            one = {"enum": list(key.choices)} if key.choices else _TYPED
            return {"type": "array", "items": one}
        case "command":
            return {"anyOf": [{"type": "string"}, {"type": "array", "items": _TYPED}]}
        case "filters":
            return {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z][a-z0-9_]{0,62}$"},
                "additionalProperties": _TYPED,
            }
        case "integer" | "number":
            return {"anyOf": [_bounded(key), _REFERENCE]}
        case "flag":
            return {"anyOf": [{"type": "boolean"}, _REFERENCE]}
        case "secret":
            return _REFERENCE
    if key.choices:
        return {"anyOf": [{"enum": list(key.choices)}, _REFERENCE]}
    return _TYPED


def _bounded(key: Key) -> Schema:
    bounds = {"minimum": key.minimum, "maximum": key.maximum}
    return {"type": key.shape} | {
        word: bound for word, bound in bounds.items() if bound is not None
    }
