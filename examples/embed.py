"""A company inside your own asyncio program: `python examples/embed.py`."""

import asyncio
import tempfile

from crewlet import Node, Turn
from crewlet.company import parse_company

COMPANY = """
name: Embedded
roles:
  - name: Developer
    handle: dev
"""


async def my_turn(turn: Turn) -> str:
    return f"{turn.seat.name} read: {turn.text}"


async def main() -> None:
    answered: asyncio.Queue[str] = asyncio.Queue()
    with tempfile.TemporaryDirectory() as data:
        async with Node(parse_company(COMPANY), turn=my_turn, data=data, web=False) as node:
            node.on_answer(lambda seat, answer: answered.put_nowait(f"{seat}: {answer}"))
            await node.send("dev", "hello from my own program")
            print(await answered.get())


asyncio.run(main())
