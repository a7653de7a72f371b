"""The server under the scripts: killed and brought back, on one port."""

from __future__ import annotations

from tests.conformance.server import NatsServer


class MortalServer(NatsServer):
    """A server that can be killed."""

    def kill(self) -> None:
        """As a power cut: it writes nothing any more."""
        child, self._child = self._child, None
        assert child is not None
        child.kill()
        child.wait()
