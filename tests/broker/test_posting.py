"""A publish to a real broker ends within the one deadline that it was given."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from actors.ports import PUBLISH_S, Unavailable
from crewlet import topics
from tests.broker.real import freeze, serving


@pytest.mark.certifies(50)
@pytest.mark.parametrize("topic", [topics.event("seen"), topics.inbox("seen"), topics.inbox("new")])
def test_a_server_that_stands_still_is_waited_for_no_longer_than_was_said(
    tmp_path: Path, topic: str
) -> None:
    """Also where more has to be asked than to store it: whether the seat has a mailbox."""

    async def main() -> None:
        async with serving(tmp_path, memory=True) as real:
            client = real.client()
            await client.start()
            for handle in ("seen", "new"):
                await client.ensure(topics.inbox_of(handle))
            await client.publish(topics.inbox("seen"), b"{}", message_id="1")
            pid = real.server.pid
            assert pid is not None
            await freeze(pid)
            began = time.monotonic()
            try:
                with pytest.raises(Unavailable):
                    await client.publish(topic, b"{}", message_id="2", within_s=0.2)
                assert 0.2 <= time.monotonic() - began < PUBLISH_S / 2
            finally:
                os.kill(pid, signal.SIGCONT)
            stored = await client.publish(topic, b"{}", message_id="2")
            assert stored.position > 0
            await client.stop()

    asyncio.run(main())
