"""The admin endpoint of a node: a Unix socket in its data folder, and the client for it.

Nothing here knows what the verbs do: whoever starts the endpoint brings a closed table of
them, and whoever calls decides what to print.
"""

from actors.admin.client import AdminClient, CallFailed, NoAnswer, NotRunning, ReaderGone
from actors.admin.endpoint import AlreadyServed, Endpoint
from actors.admin.frames import Failure
from actors.admin.paths import UnsafeFolder, socket_path
from actors.admin.verbs import Caller, Refused, Verb

__all__ = [
    "AdminClient",
    "AlreadyServed",
    "CallFailed",
    "Caller",
    "Endpoint",
    "Failure",
    "NoAnswer",
    "NotRunning",
    "ReaderGone",
    "Refused",
    "UnsafeFolder",
    "Verb",
    "socket_path",
]
