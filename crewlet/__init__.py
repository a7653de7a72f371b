"""crewlet: a durable runtime for companies of AI agents."""

from crewlet.version import __version__

__all__ = ["__version__"]
