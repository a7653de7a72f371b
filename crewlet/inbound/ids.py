"""Ids that follow from what caused them: a second pass says nothing new (docs/adr/0006)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from typing import Final

_IDS: Final = uuid.UUID("5a3c0d0e-6b7f-5b0f-9a54-2f6a5d1c8e77")


def derived_id(*parts: object) -> str:
    """The id that follows from these parts: the same on every node and in every pass."""
    return str(uuid.uuid5(_IDS, ":".join(str(part) for part in parts)))


def work_key(event_ids: Iterable[str]) -> str:
    """What a turn works, whichever run of it: 32 hex digits; empty for nothing."""
    ids = sorted(set(event_ids))
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:32] if ids else ""
