"""The shell at a terminal: a real pseudo-terminal, a real process, a real node."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import stat
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crewlet.cli.completion import Names, Verbs
from tests.cli.conftest import COMMAND, Shell
from tests.cli.operated import Running

ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>]|\][^\x07]*\x07)")
TAB, CTRL_C, CTRL_D, UP = "\t", "\x03", "\x04", "\x1b[A"


def _own_terminal() -> None:
    """What is typed as Ctrl-C is a signal for whoever has the terminal as its own."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command in a pseudo-terminal, and what it has shown so far."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        # Nobody answers here where the cursor is.
        plain = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environment = shell.environment(COLUMNS="120", LINES="40", **plain)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=shell.folder,
            env=environment,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str, within_s: float = 20) -> str:
        """Wait until it shows the text; everything up to it, which is then forgotten."""
        deadline = time.monotonic() + within_s
        while text not in ESCAPES.sub("", self.shown):
            left = deadline - time.monotonic()
            assert left > 0, f"no {text!r} in {ESCAPES.sub('', self.shown)!r}"
            if select.select([self._master], [], [], min(left, 1))[0]:
                try:
                    self.shown += os.read(self._master, 65536).decode(errors="replace")
                except OSError:
                    assert text in ESCAPES.sub("", self.shown), self.shown
        before, _, after = ESCAPES.sub("", self.shown).partition(text)
        self.shown = after
        return before + text

    def line(self, text: str) -> None:
        """Type a line, or a key, as a person does: at the prompt."""
        self.until("crewlet>")
        self.type(text)

    def leave(self) -> int:
        """Ctrl-D, again where it came between two prompts and was lost; the exit code."""
        for _ in range(20):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.type(CTRL_D)
                return self.process.wait(1)
        raise AssertionError(f"it does not leave: {self.shown!r}")

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        os.close(self._master)


@pytest.fixture
def terminal(operated: Running, shell: Shell) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_(*arguments: str) -> Terminal:
        opened.append(Terminal(shell, *(arguments or ("shell",))))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def test_lines_are_answered_and_failures_do_not_end_it(terminal: Callable[..., Terminal]):
    shell = terminal()
    shell.until("node n1 of Octo, 2 seats, serving")
    shell.line("seat hold dev\r")
    shell.until("takes nothing new")
    shell.line("seets\r")
    shell.until("did you mean seats")
    shell.line("why dev\r")
    shell.until("it is held")
    shell.line("help seat release\r")
    shell.until("crewlet seat release dev")
    shell.line("exit\r")
    assert shell.process.wait(20) == 0


def test_tab_completes_verbs_and_the_seats_of_the_node(terminal: Callable[..., Terminal]):
    shell = terminal()
    shell.line("seat qui" + TAB)
    shell.until("esce")
    shell.type(" o" + TAB)
    shell.until("ps")
    shell.type("\r")
    shell.until("`crewlet seat unquiesce ops`")
    shell.line(CTRL_D)
    assert shell.process.wait(20) == 0


def test_lines_come_back_in_the_next_session_for_this_user_only(
    terminal: Callable[..., Terminal], shell: Shell
):
    first = terminal()
    first.line("seat pause dev\r")
    first.until("seat resume dev")
    first.line(CTRL_D)
    first.process.wait(20)
    history = shell.folder / "data" / "shell_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+seat pause dev" in history.read_text()
    second = terminal()
    second.line(UP)
    second.until("seat pause dev")
    second.type(CTRL_C)
    assert second.leave() == 0


def test_ctrl_c_ends_a_trace_and_leads_back_to_the_prompt(
    terminal: Callable[..., Terminal], operated: Running
):
    shell = terminal()
    shell.line("trace on dev\r")
    shell.until("control")
    operated.run(operated.node.send("dev", "hello"))
    shell.until("Ended")
    shell.type(CTRL_C)
    shell.line("seat show dev\r")
    shell.until("turns      1")
    shell.line(CTRL_D)
    assert shell.process.wait(20) == 0


def test_deleting_asks_a_person_for_the_handle(terminal: Callable[..., Terminal]):
    shell = terminal()
    shell.line("seat delete dev\r")
    shell.until("Its handle again: ")
    shell.type("ops\r")
    shell.until("nothing was done")
    shell.line("seat delete dev\r")
    shell.until("Its handle again: ")
    shell.type("dev\r")
    shell.until("begins anew")
    shell.line(CTRL_D)
    assert shell.process.wait(20) == 0


def test_top_is_live_until_ctrl_c(terminal: Callable[..., Terminal], operated: Running):
    operated.go.clear()
    operated.run(operated.node.send("dev", "hello"))
    top = terminal("top", "--every", "0.2")
    top.until("working")
    operated.loop.call_soon_threadsafe(operated.go.set)
    top.until("2 seats, 2 of them here, 0 busy")
    top.type(CTRL_C)
    assert top.process.wait(20) == 0


def test_a_folder_that_takes_no_file_keeps_no_history(tmp_path: Path):
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from crewlet.cli.shell import _history

    assert isinstance(_history(tmp_path), FileHistory)
    assert isinstance(_history(tmp_path / "missing"), InMemoryHistory)
    (tmp_path / "shell_history").unlink()
    (tmp_path / "shell_history").symlink_to(tmp_path / "elsewhere")
    assert isinstance(_history(tmp_path), InMemoryHistory), "a link is not followed"
    assert not (tmp_path / "elsewhere").exists()


def proposed(data: Path, text: str) -> list[str]:
    return [word for word, _, _ in Verbs(Names(data)).proposals(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["send", "seats", "seat"]),
        ("sea", ["seats", "seat"]),
        ("seat ", ["show", "hold"]),
        ("seat un", ["unquiesce"]),
        ("seat show ", ["dev", "ops"]),
        ("seat show o", ["ops"]),
        ("seat show dev ", []),
        ("seat move dev ", ["n1"]),
        ("seat delete dev --yes ", ["dev", "ops"]),
        ("seat show -o ", ["table", "json", "jsonl"]),
        ("seat show -o json d", ["dev"]),
        ("seat show --on ", ["n1"]),
        ("seat show --o", ["--output", "--on"]),
        ("tell ", ["dev", "ops", "router"]),
        ("tell router q", ["quiesce"]),
        ("why ", ["dev", "ops"]),
        ("help seat qu", ["quiesce"]),
        ("help why ", []),
        ("nope ", []),
        ("seat hold 'a b", []),
        ("up", []),
    ],
)
def test_what_may_come_next_is_proposed(
    operated: Running, shell: Shell, text: str, words: list[str]
):
    found = proposed(shell.folder / "data", text)
    assert set(words) <= set(found)
    assert bool(words) == bool(found)


def test_without_a_node_verbs_are_proposed_all_the_same(tmp_path: Path):
    assert proposed(tmp_path, "seat un") == ["unquiesce"]
    assert proposed(tmp_path, "seat show ") == []
