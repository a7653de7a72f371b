"""The bytes of a delivery, read as what their content type says: JSON, or a form around JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from crewlet.errors import CrewletError

FORM: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 64


class Unreadable(CrewletError):
    """A body that is not the format it claims: the edge answers 400, a retry changes nothing."""

    code = "unreadable"
    blame = "caller"


def header(headers: Mapping[str, str], wanted: str) -> str:
    """A header's value whatever the case of its name, '' where it is absent."""
    found = headers.get(wanted)
    if isinstance(found, str):
        return found
    folded = wanted.lower()
    return next((value for key, value in headers.items() if key.lower() == folded), "")


def decode(headers: Mapping[str, str], body: bytes, form_field: str = "payload") -> Any:
    """The JSON value of a body. Raises Unreadable, and nothing else.

    A missing content type is read as JSON. Of a form, `form_field` holds the JSON.
    """
    kind = header(headers, "Content-Type").split(";", 1)[0].strip().lower()
    if kind == FORM:
        return _json(_field(body, form_field))
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise Unreadable(
            f"the content type {kind[:80]!r} is neither application/json nor {FORM}; "
            "choose one of the two in the hook's settings"
        )
    return _json(body)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError:  # not a DecodeError: raised on nesting beyond about a thousand
        raise Unreadable("the body is not readable JSON: it is nested too deep") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(f"the body is not readable JSON: {error}") from None


def _field(body: bytes, wanted: str) -> bytes:
    """One field of a form, the first of its name."""
    pairs = body.split(b"&", _MAX_FIELDS)
    for pair in pairs[:_MAX_FIELDS]:
        key, _, value = pair.partition(b"=")
        if key == wanted.encode():
            return unquote_to_bytes(value.replace(b"+", b" "))
    raise Unreadable(
        f"the form has no field {wanted!r}; a plain JSON body needs the content type "
        "application/json"
    )
