"""Tokens that vendors put into the body itself: taken out before the body is stored and shown."""

from __future__ import annotations

import re
from typing import Final

_JSON: Final = re.compile(rb'("token"[ \t\r\n]{0,9}:[ \t\r\n]{0,9}")[^"\\]{0,500}(?=")')
_IN_FORM: Final = re.compile(rb"((?:^|&)token=)[^&]{0,500}")
_JSON_IN_FORM: Final = re.compile(
    rb"(%22token%22(?:%20|\+){0,9}(?:%3A|:)(?:%20|\+){0,9}%22)[^&%]{0,500}(?=%22)", re.IGNORECASE
)


def without_tokens(body: bytes) -> bytes:
    """The body with `***` for each value of a key or form field `token`; all else as it was.

    A key inside a text of JSON has escaped quotes around it, and stays; so does a `&token=` in
    JSON, which is part of somebody's link.
    """
    if b"token" not in body.lower():
        return body
    is_json = body.lstrip()[:1] in (b"{", b"[")
    for pattern in (_JSON,) if is_json else (_IN_FORM, _JSON_IN_FORM):
        body = pattern.sub(rb"\1***", body)
    return body
