"""What the edge knows of a delivery and no header can say, put beside the headers.

No header that anybody sends has a colon in its name.
"""

from __future__ import annotations

from typing import Final

RECEIVED: Final = ":received"
"""When the delivery arrived, in seconds since 1970: for vendors that sign their own time."""

RULE: Final = ":rule"
"""How the company's file reads a generic source, as JSON and without its secret."""

PATH_EVENT: Final = ":event"
"""The last part of /webhooks/VENDOR/EVENT: for vendors that name the event nowhere else."""

URL_PROOF: Final = ":token"
"""The URL's `token`, for vendors that sign nothing. Never kept."""
