"""Which signal asks, and which one insists."""

from __future__ import annotations

import asyncio
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from crewlet.node import foreground


@pytest.mark.parametrize("told", [False, True])
def test_only_a_second_signal_insists_whoever_told_the_node_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, told: bool
) -> None:
    """A service manager whose stop command is `crewlet drain` sends SIGTERM right after it."""
    left: list[int] = []
    monkeypatch.setattr(foreground, "_exit_now", left.append)
    monkeypatch.setattr(foreground, "end_children", lambda: None)
    node: Any = SimpleNamespace(stopping=asyncio.Event())
    stop = foreground._Stop(node)
    if told:
        node.stopping.set()
    stop._on_signal(signal.SIGTERM)
    assert node.stopping.is_set() and left == []
    assert ("again to stop at once" in capsys.readouterr().err) == told
    stop._on_signal(signal.SIGTERM)
    assert left == [143]
