"""The Mattermost account that a node listens as: another one as soon as the company has another."""

from __future__ import annotations

from contextlib import AsyncExitStack

from crewlet.company import Company, MattermostIntegration
from crewlet.web import Ear, listening


class Ears:
    """Of a node that has the role `ingress`. A change hangs up first and dials then: what is said
    in between, other nodes hear, or the account's webhook brings it."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._listens: MattermostIntegration | None = None
        self._closers = AsyncExitStack()

    async def follow(self, company: Company) -> None:
        """Listen as this company's account from now on; as nobody where it has none."""
        chat = company.integrations.mattermost
        if chat == self._listens:
            return
        await self.stop()
        self._listens = chat
        await self._closers.enter_async_context(listening(chat, self._ear))

    async def stop(self) -> None:
        """Hang up. Idempotent."""
        self._listens = None
        await self._closers.aclose()
