"""Another server leads a mailbox: what that means for whoever pulls from it.

What the old leader handed out in its last moment may never have reached us although our own
connection stood, and nobody would hand it back before its ack window ends. The server tells of each
election: what was lost is then taken back and the pull made anew, as after a broken connection.
"""

from __future__ import annotations

from typing import Final

import structlog

from crewlet.broker.pulls import Pulls
from crewlet.broker.route import Message
from crewlet.broker.wire import Wire

ELECTED: Final = "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED"

log = structlog.get_logger(__name__)


class Elections:
    """Of the mailboxes that one client pulls from."""

    def __init__(self, wire: Wire, pulls: Pulls) -> None:
        self._wire = wire
        self._pulls = pulls

    def listen(self) -> None:
        """Hear of elections from now on."""
        self._wire.route(f"{ELECTED}.*.*", self._heard)

    def _heard(self, message: Message) -> None:
        durable = message.subject.rpartition(".")[2]
        for pull in self._pulls.of_durable(durable):
            log.info("broker_mailbox_leader_elected", mailbox=str(pull.mailbox))
            pull.came_up(ours=pull.epoch > 0)
