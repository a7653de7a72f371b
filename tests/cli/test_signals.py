"""A stop is obeyed from the first moment (field report C44)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from crewlet.cli import early
from tests.cli.conftest import COMMAND, FakeNode, Shell

pytestmark = pytest.mark.field("C44")

# A module that tells the test that it is being imported, and then takes for ever.
SLOW_IMPORT = """
import sys, types, importlib.abc, importlib.machinery, threading
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "crewlet.cli.app":
            print("importing", flush=True)
            threading.Event().wait()
sys.meta_path.insert(0, Slow())
from crewlet.cli.entry import main
main()
"""

# `up` with a node that the test brings: it takes the signals over, as the real one does.
OWN_HANDLERS = """
import sys, types, signal
def run_foreground(company, node, data, port, quiet, **named):
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    print("running", flush=True)
    while len(asked) < 2:
        signal.pause()
    return 0
module = types.ModuleType("crewlet.node")
module.run_foreground = run_foreground
sys.modules["crewlet.node"] = module
from crewlet.cli.entry import main
main()
"""


def start(script: str, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_stop_during_the_imports_is_obeyed(number: signal.Signals, code: int):
    with start(SLOW_IMPORT, "up") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"importing\n"
        process.send_signal(number)
        assert process.wait(10) == code
        assert process.stderr is not None
        assert process.stderr.read() == b""


def _may_unshare() -> bool:
    command = ["unshare", "-pf", "--mount-proc", "true"]
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not _may_unshare(), reason="needs a namespace of process ids")
def test_as_process_1_a_stop_during_the_imports_is_obeyed():
    unshare = ("unshare", "-pf", "--mount-proc", "--kill-child")
    with start(SLOW_IMPORT, "up", prefix=unshare) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"importing\n"
        (first,) = _children(process.pid)
        os.kill(first, signal.SIGTERM)
        assert process.wait(10) == 0


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:  # noqa: PTH123
        return [int(child) for child in children.read().split()]


def test_up_hands_the_signals_to_the_node():
    with start(OWN_HANDLERS, "up") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"running\n"
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_follower_is_stopped_without_a_word(
    node: FakeNode, shell: Shell, number: signal.Signals, code: int
):
    with subprocess.Popen(
        [*COMMAND, "events", "--follow", "-o", "jsonl"],
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline()
        follower.send_signal(number)
        _, complaint = follower.communicate(timeout=10)
    assert (follower.returncode, complaint) == (code, b"")


def test_a_signal_that_the_parent_had_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        early.obey_early()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_a_stop_that_python_swallowed_is_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(early, "_asked", [])
    assert early.stop_was_asked() is None
    with pytest.raises(SystemExit):
        early._leave(signal.SIGTERM, None)
    assert early.stop_was_asked() == 0


def test_the_entry_loads_nothing_heavy():
    script = (
        "import sys; before = set(sys.modules); import crewlet.cli.entry; "
        "print(*sorted({n.split('.')[0] for n in set(sys.modules) - before}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"click", "rich", "msgspec", "asyncio", "thespian", "nats", "structlog", "logging"}
    assert not heavy & set(run.stdout.split())
