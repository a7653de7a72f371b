"""A disk that fills up: what was acknowledged is kept, and it goes on when there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.ports import Unavailable
from crewlet.broker.disk import ROOM_BYTES, DiskWatch, finding
from tests.broker.real import box, done, eventually, serving

MIB = 2**20
SAID = "[ERR] filestore [crewlet_agent] critical write error: write x: no space left on device"


@pytest.mark.parametrize(
    ("lines", "was_full", "free", "found"),
    [
        ("", False, 0, "fine"),
        ("[inf] server is ready", False, 10 * ROOM_BYTES, "fine"),
        (SAID, False, 10 * ROOM_BYTES, "full"),
        (SAID, True, 0, "still full"),
        ("", True, ROOM_BYTES - 1, "still full"),
        ("", True, ROOM_BYTES, "room again"),
    ],
)
def test_what_is_found(lines: str, was_full: bool, free: int, found: str) -> None:
    assert finding(lines, was_full=was_full, free=free, total=1000 * ROOM_BYTES) == found


def test_of_a_small_disk_a_quarter_is_room() -> None:
    assert finding("", was_full=True, free=10 * MIB, total=40 * MIB) == "room again"
    assert finding("", was_full=True, free=9 * MIB, total=40 * MIB) == "still full"


def test_what_an_earlier_server_said_is_not_news(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(SAID)
    watch = DiskWatch(file, tmp_path, lambda _: (100, 100, 0))
    assert watch.look() == "fine"
    with file.open("a") as log:
        log.write(f"\n{SAID.upper()}\n")
    assert [watch.look(), watch.look()] == ["full", "still full"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "crewlet-test", str(place)]
    allowed = os.geteuid() == 0 and shutil.which("mount") is not None
    if not allowed or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only, where the machine lets it")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.certifies(48)
def test_a_full_disk_loses_nothing_and_ends_when_there_is_room(small_disk: Path) -> None:
    """Others fill the disk under a server that runs."""

    async def play() -> None:
        async with serving(small_disk / "broker") as real:
            client = real.client()
            await client.start()
            await client.ensure(box())
            ballast = small_disk / "ballast"
            ballast.write_bytes(bytes(28 * MIB))
            stored = 0
            with pytest.raises(Unavailable):
                for number in range(400):
                    body = b"%08d" % number + bytes(65536)
                    await client.publish(box().topic, body, message_id=f"m{number}")
                    stored += 1
            assert stored > 50, "it was full before anything was sent"
            first = real.server.pid
            ballast.unlink()

            async def works_again() -> bool:
                try:
                    await client.publish(box().topic, b"after", message_id="after")
                except Unavailable:
                    return False
                return True

            await eventually(works_again, 60.0)
            assert real.server.pid != first
            seen: list[bytes] = []
            attachment = await client.attach(box(), 1)
            while taken := list(await client.fetch(attachment, 100, 1.0)):
                seen += [delivery.body[:8] for delivery in taken]
                await client.settle(done(taken))
            kept = [b"%08d" % number for number in range(stored)]
            # The one that was refused may be there: nobody said that it is not.
            assert seen in ([*kept, b"after"], [*kept, b"%08d" % stored, b"after"])
            await client.stop()

    asyncio.run(play())
