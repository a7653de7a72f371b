"""A note of a message that is gone: what a server keeps that was killed between the two writes.

Such a note cannot be made on a server that lives (deleting a message takes the note along); the
kills of tests/end_to_end/test_crash.py bring one in about twenty rounds. Here the server's answer
says one more is out than there is, and what is there must come through the cure unharmed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from actors.delivery import Done, Mailbox
from tests.broker.real import box, connected


@pytest.mark.certifies(42)
def test_laying_ghosts_leaves_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            for text in ("worked", "held", "held too", "waits"):
                await client.publish(box().topic, text.encode(), message_id=text)
            attachment = await client.attach(box(), 1)
            worked, *held = await client.fetch(attachment, 3, 1.0)
            await client.settle([(worked, Done())])
            await client.release(attachment)
            told = client._mailboxes.info

            async def one_more(mailbox: Mailbox) -> dict[str, Any] | None:
                info = await told(mailbox)
                return info and {**info, "num_ack_pending": info["num_ack_pending"] + 1}

            with monkeypatch.context() as haunted:
                haunted.setattr(client._mailboxes, "info", one_more)
                assert await client.reclaim(box()) == len(held)
            again = await client.attach(box(), 2)
            deliveries = await client.fetch(again, 5, 1.0)
            assert [d.body for d in deliveries] == [b"held", b"held too", b"waits"]
            assert [d.count for d in deliveries] == [2, 2, 1]

    asyncio.run(asyncio.wait_for(play(), 30))
