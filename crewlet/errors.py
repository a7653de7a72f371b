"""One tree of errors; `blame` says whose turn it is to act.

caller: the input is wrong, a retry changes nothing. peer: something we depend on did not
answer or refused, a retry may help. node: this process is not in a state to do it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Blame = Literal["caller", "peer", "node"]


class CrewletError(Exception):
    """The root. `code` is stable and machine-readable; the message is a sentence with a way out."""

    code: ClassVar[str] = "error"
    blame: ClassVar[Blame] = "node"


class ConfigError(CrewletError):
    """A company or node file that is refused whole."""

    code = "config"
    blame = "caller"


class CorruptEvent(CrewletError, ValueError):
    """Bytes that are no event of ours."""

    code = "corrupt_event"
    blame = "caller"


class PublishUnknown(CrewletError):
    """The broker never said whether it stored the event; a retry under the same id is safe."""

    code = "unknown"
    blame = "peer"

    def __init__(self, message_id: str, topic: str, waited_s: float) -> None:
        super().__init__(
            f"the broker did not say within {waited_s:.0f} s whether it stored message "
            f"{message_id} on {topic}; publishing it again under this id is safe"
        )
        self.message_id = message_id


class StoreUnavailable(CrewletError):
    """The coordination store did not answer: not yes, not no."""

    code = "store_unavailable"
    blame = "peer"


class BrokerRefused(CrewletError):
    """A broker that we will not run on (a limit too small, a store held by another process)."""

    code = "broker_refused"
    blame = "peer"


class NodeRefused(CrewletError):
    """This node will not start: its data folder is held, or another node serves the company."""

    code = "node_refused"
    blame = "node"


class TurnStopped(CrewletError):
    """A person asked the running turn to stop. A handler lets it out; its turn ends with it."""

    code = "turn_stopped"
    blame = "caller"


class AskRefused(CrewletError):
    """A question that one seat may not put to another; asking it again changes nothing."""

    code = "ask_refused"
    blame = "caller"


class ReplyRefused(CrewletError):
    """An answer on a channel that is closed, that is not the seat's own, or that never was."""

    code = "reply_refused"
    blame = "caller"
