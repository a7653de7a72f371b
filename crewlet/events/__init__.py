"""Events: the envelope on the wire, the catalogue of types, trace context."""

from crewlet.events.catalogue import category
from crewlet.events.envelope import Event, decode, encode
from crewlet.events.trace import Trace

__all__ = ["Event", "Trace", "category", "decode", "encode"]
