"""Logs: one line an event, to standard error, named by what happened."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, debug: bool = False) -> None:
    """For a process that is ours. An embedder's logging is the embedder's."""
    terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            # A terminal gets columns; everything else one JSON object a line, which no
            # sender, subject or handle can break: control characters are escaped.
            structlog.dev.ConsoleRenderer(colors=False)
            if terminal
            else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if debug else logging.WARNING
        ),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
