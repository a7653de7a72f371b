"""What works the seats in chaos runs: a handler that writes each turn into its node's file.

It is copied beside the company's file and imported there, so it imports nothing of ours. Each line
is one write to a file opened with O_APPEND: what a killed process wrote stays whole. Times are
CLOCK_MONOTONIC, which all processes of a host share; `wall` is for comparison with the broker's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

NODE = os.environ.get("CHAOS_NODE", "")
INCARNATION = os.environ.get("CHAOS_INCARNATION", "")

_FILE = os.open(
    os.environ.get("CHAOS_RECORD", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
)

_STUBBORN = Path(os.environ.get("CHAOS_RECORD", os.devnull)).with_name("stubborn")


async def work(turn: Any) -> str:
    """A body is `KEY MILLISECONDS`, `KEY boom`, which ends the process, or `KEY stubborn`, which
    does not end, whoever cancels it, while a file of that name lies beside its node's."""
    words = [event.body.split() for event in turn.events]
    keys = [word[0] for word in words]
    _write("start", turn, keys)
    try:
        if any(word[1] == "boom" for word in words):
            os.kill(os.getpid(), signal.SIGKILL)
        if any(word[1] == "stubborn" for word in words):
            await _stubborn()
            words = []
        await asyncio.sleep(sum(float(word[1]) for word in words) / 1000)
    except asyncio.CancelledError:
        _write("cut", turn, keys)
        raise
    _write("end", turn, keys)
    return "done"


async def _stubborn() -> None:
    while _STUBBORN.exists():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)


def _write(kind: str, turn: Any, keys: list[str]) -> None:
    line = {
        "kind": kind,
        "at": time.monotonic(),
        "wall": time.time(),
        "node": NODE,
        "incarnation": INCARNATION,
        "seat": turn.seat.handle,
        "turn": turn.turn_id,
        "keys": keys,
        "attempt": turn.attempt,
    }
    os.write(_FILE, json.dumps(line).encode() + b"\n")
