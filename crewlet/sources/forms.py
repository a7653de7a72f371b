"""Bodies that are a form with fields of their own, and not JSON in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from crewlet.sources.content import FORM, Unreadable, header

_MAX_FIELDS: Final = 64


def is_form(headers: Mapping[str, str]) -> bool:
    """Whether the content type says so."""
    return header(headers, "Content-Type").split(";", 1)[0].strip().lower() == FORM


def decode_form(body: bytes) -> dict[str, str]:
    """The fields, the first of each name. Raises Unreadable, and nothing else."""
    pairs = body.split(b"&", _MAX_FIELDS)[:_MAX_FIELDS]
    fields: dict[str, str] = {}
    for pair in filter(None, pairs):
        key, _, value = pair.partition(b"=")
        fields.setdefault(_text(key), _text(value))
    if not fields:
        raise Unreadable("the form has no fields; a JSON body needs the content type of JSON")
    return fields


def _text(quoted: bytes) -> str:
    try:
        return unquote_to_bytes(quoted.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Unreadable("the form holds bytes that are no UTF-8 text") from None
