"""A loop in a thread of its own, for a Thespian program that has none."""

from __future__ import annotations

import asyncio
import threading


class LoopThread:
    """Runs an event loop until `stop`. The thread is a daemon: it never keeps a process up."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="actors", daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int:
        ident = self._thread.ident
        assert ident is not None
        return ident

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def stop(self, timeout_s: float) -> None:
        """End the loop; wait for the thread up to `timeout_s` seconds."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout_s)
