"""The coordination store: small facts that the whole fleet must agree on.

Reads come from the leader of the bucket's stream, so they are read-your-writes whichever node
wrote; they are no proof (an isolated old leader may answer for some seconds): every
irreversible act is followed by a conditional write.
"""

from crewlet.coordination.store import BUCKETS, Bucket, Conflict, Entry, Heard, Store, Watch

__all__ = ["BUCKETS", "Bucket", "Conflict", "Entry", "Heard", "Store", "Watch"]
