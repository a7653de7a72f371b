"""A process that fetches from a mailbox, for a test that stops it: URL PASSWORD."""

from __future__ import annotations

import asyncio
import sys

from crewlet.broker.dial import Address
from crewlet.broker.embedded import USER
from crewlet.broker.jetstream import JetStreamBroker
from tests.broker.real import box


async def main() -> None:
    url, password = sys.argv[1:]
    client = JetStreamBroker(Address((url,), user=USER, password=password))
    await client.start()
    attachment = await client.attach(box(), 1)
    print("ready", flush=True)
    await client.fetch(attachment, 5, 300.0)


if __name__ == "__main__":
    asyncio.run(main())
