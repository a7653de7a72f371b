"""Silence for the logs of a simulated fleet: it fails all the time, and that is the point."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


def _dropped(*_: object) -> dict[str, object]:
    raise structlog.DropEvent


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is logged inside the block; what was configured before is back behind it."""
    before, level = structlog.get_config(), logging.root.manager.disable
    structlog.configure(
        processors=[_dropped],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        cache_logger_on_first_use=False,
    )
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        structlog.configure(**before)
        logging.disable(level)
