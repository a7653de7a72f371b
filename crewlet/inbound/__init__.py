"""From a delivery to a wake, and from a wake to a turn."""
