"""The event queue: the one way in which components tell one another anything."""

from crewlet.queue.event_queue import EventQueue, Published

__all__ = ["EventQueue", "Published"]
