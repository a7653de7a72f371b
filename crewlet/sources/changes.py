"""What changed, as a person reads it: `state: Todo → Done`, one change a line or a bracket."""

from __future__ import annotations

from typing import Final

NOTHING: Final = "(none)"

_MAX_SHOWN: Final = 80
"""Characters of a value that still fit into a sentence; of a longer one its field's name stays."""


def change(field: str, before: str, after: str) -> str:
    """`labels: (none) → urgent`, in one line; the field alone of a text, and of what reads the
    same before and after."""
    sides = (before.strip() or NOTHING, after.strip() or NOTHING)
    if sides[0] == sides[1] or any(len(side) > _MAX_SHOWN or "\n" in side for side in sides):
        return field
    return f"{field}: {' → '.join(sides)}"


def is_bookkeeping(field: str) -> bool:
    """Whether a field is the database's own: when it was changed, and by whom."""
    return field.endswith(("_at", "_by", "_by_id"))


def spoken(field: str) -> str:
    """A field's name as a person says it: `assignees` of `assignee_ids`."""
    name = field[:_MAX_SHOWN].removesuffix("_id")
    if name.endswith("_ids"):
        name = f"{name.removesuffix('_ids')}s"
    return name.replace("_", " ")
