"""C07 with `crewlet apply` on whole nodes: what an edit does to the clock's work."""

from __future__ import annotations

import asyncio

import pytest

from tests.node.revised import HEAD, OPS, Fleet, on_a_fleet, text


def file(cron: str, name: str = "daily") -> str:
    """Company T with one schedule of `dev`; none without a rule. Nodes begin at midnight, UTC."""
    entry = f"{{name: {name}, cron: '{cron}', text: look}}" if cron else ""
    return text(f"  - {{name: Dev, handle: dev, schedules: [{entry}]}}\n", OPS, head=HEAD)


async def until(minute: int, second: int = 0) -> None:
    """Let it be that late after midnight."""
    await asyncio.sleep(minute * 60 + second - asyncio.get_running_loop().time())


async def labels(fleet: Fleet, node: str) -> list[str]:
    """What fired or was missed, as `HH:MM outcome`."""
    return [
        f"{event.value('label', str, '')[11:16]} {event.value('outcome', str, '')}"
        for event in await fleet[node].recorded("scheduled_task_fired")
    ]


@pytest.mark.field("C07")
@pytest.mark.certifies(122, 123)
def test_an_applied_edit_fires_for_no_moment_before_it() -> None:
    async def test(fleet: Fleet) -> None:
        await until(3)
        assert await labels(fleet, "n1") == ["00:02 fired"]
        await fleet["n1"].one("apply", text=file("5 0 * * *"))  # at 00:03: a moment to come
        await until(6)
        await fleet["n2"].one("apply", text=file("1 0 * * *"))  # at 00:06: a moment that is past
        await until(8)
        await fleet["n1"].node.stop()  # the duty goes to the other, whose first look makes up
        del fleet.nodes["n1"]
        await until(10)
        await fleet["n2"].one("apply", text=file("12 0 * * *"))
        await until(11, 57)
        await fleet["n2"].one("apply", text=file("12 0 * * *", "renamed"))
        await until(13)
        await fleet["n2"].one("apply", text=file("15 0 * * *", "renamed"))
        await until(14, 50)
        await fleet["n2"].one("apply", text=file(""))
        await until(20)
        assert await labels(fleet, "n2") == ["00:02 fired", "00:05 fired", "00:12 fired"]
        assert [(seat, said) for _, seat, said in fleet.worked] == [("dev", "look")] * 3
        assert await fleet["n2"].ask("schedule.ls") == []

    on_a_fleet(test, "n1", "n2", file=file("2 0 * * *"))
