"""Turn handlers: a Python callable, any command, or a model behind an endpoint; one face, one
outcome."""

from crewlet.handlers.build import build_handler, wrap
from crewlet.handlers.handler import Handler, HandlerSpec, OnOverdue
from crewlet.handlers.strays import Strays

__all__ = ["Handler", "HandlerSpec", "OnOverdue", "Strays", "build_handler", "wrap"]
