"""What a vendor wants to hear in place of the edge's ordinary answer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Reply(Struct, frozen=True):
    """Status 200 with `content` as JSON, or without a body. `publish` false: the delivery was
    a question of the vendor's to the edge itself, and nobody else needs it."""

    content: Any = None
    publish: bool = True
