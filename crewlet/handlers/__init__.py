"""Turn handlers: a Python callable or any command; one face, one outcome."""

from crewlet.handlers.build import build_handler, wrap
from crewlet.handlers.handler import Handler, HandlerSpec, OnOverdue

__all__ = ["Handler", "HandlerSpec", "OnOverdue", "build_handler", "wrap"]
