"""The event queue: the one way in which components tell one another anything."""

from crewlet.queue.batch import Batch, Handle, Key
from crewlet.queue.event_queue import EventQueue
from crewlet.queue.publisher import Listener, Published, Publisher

__all__ = ["Batch", "EventQueue", "Handle", "Key", "Listener", "Published", "Publisher"]
