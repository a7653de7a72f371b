"""An end of its own for one thread outside (`ActorSystem.private`)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from thespian.actors import ActorAddress

from actors.system.address import Address
from actors.system.endpoint import External, Tomb

if TYPE_CHECKING:
    from actors.system.thespian_face import ThespianFace


class ThespianContext:
    """What `ActorSystem.private()` hands to a thread."""

    def __init__(self, base: ThespianFace, end: External) -> None:
        self._base = base
        self._end = end

    def tell(self, to: ActorAddress, message: object) -> None:
        """Send; answers come to this context."""
        self._base.tell_from(self._end, to, message)

    def ask(
        self, to: ActorAddress, message: object, timeout: timedelta | float | None = None
    ) -> object:
        """Send and wait for the next message to this context."""
        return self._base.ask_from(self._end, to, message, timeout)

    def listen(self, timeout: timedelta | float | None = None) -> object:
        """Wait for the next message to this context."""
        return self._base.listen_for(self._end, timeout)

    def newPrimaryActor(self, *args: Any) -> Address:
        """Make a top-level actor."""
        return self._base.newPrimaryActor(*args)

    def exit_context(self) -> None:
        """Close this end; what is still sent to it is a dead letter."""
        self._end.address.endpoint = Tomb(self._base, self._end.address, "closed")
