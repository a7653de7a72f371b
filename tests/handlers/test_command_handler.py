"""Commands as handlers: real processes, their exit codes, pipes, groups and environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest
from handler_turns import Overdue, a_turn, until
from structlog.testing import capture_logs

from crewlet.company import HandlerSpec
from crewlet.errors import ConfigError
from crewlet.handlers import build_handler
from crewlet.handlers.outcomes import TimedOut
from crewlet.turn import Ack, Defer, Nak, Outcome, Turn, Unavailable

pytestmark = pytest.mark.certifies(275)


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


def run(
    command: tuple[str, ...], timeout_s: float = 10, turn: Turn | None = None, **options: object
) -> Outcome:
    handler = build_handler(HandlerSpec(command=command, timeout_s=timeout_s), **options)  # type: ignore[arg-type]
    return asyncio.run(handler(turn or a_turn()))


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def pid_in(path: Path) -> int:
    return int(path.read_text())


def gone(pids: list[Path]) -> None:
    """A killed process takes a moment to go."""
    asyncio.run(until(lambda: not any(alive(pid_in(pid)) for pid in pids)))


def written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


class TestOutcomes:
    @pytest.mark.parametrize(
        ("script", "expected"),
        [
            ("echo '  done  '", Ack(answer="done")),
            ("true", Ack()),
            ("printf 'caf\\351'", Ack(answer="caf\ufffd")),
            ("exit 75", Defer("exit 75")),
            ("echo quota >&2; exit 75", Defer("exit 75: quota")),
            ("exit 69", Unavailable("exit 69")),
            ("echo 'no model' >&2; exit 69", Unavailable("exit 69: no model")),
            ("exit 3", Nak("exit 3")),
            ("printf 'first\\n\\033[31mlast\\n\\n' >&2; exit 1", Nak("exit 1: \ufffd[31mlast")),
            ("kill -SEGV $$", Nak("killed by SIGSEGV")),
        ],
    )
    def test_an_exit_code_is_an_outcome(self, script: str, expected: Outcome) -> None:
        assert run(shell(script)) == expected

    def test_the_turn_is_json_on_stdin(self) -> None:
        turn = a_turn(body="é \u2028 ✓")
        outcome = run(("cat",), turn=turn)
        assert isinstance(outcome, Ack) and outcome.answer is not None
        assert msgspec.json.decode(outcome.answer, type=Turn) == turn

    def test_a_reason_is_bounded(self) -> None:
        outcome = run(python("import sys; sys.exit('x' * 100000)"))
        assert isinstance(outcome, Nak) and len(outcome.reason) <= 500

    def test_stderr_is_logged_within_bounds(self) -> None:
        script = "import sys\nfor i in range(5000): print('line', i, file=sys.stderr)"
        with capture_logs() as logs:
            assert run(python(script)) == Ack()
        lines = [entry for entry in logs if entry["event"] == "handler_stderr"]
        assert len(lines) == 200 and lines[0]["line"] == "line 0"
        assert lines[0]["turn_id"] == "t-1" and lines[0]["seat"] == "dev"
        assert [e["lines"] for e in logs if e["event"] == "handler_stderr_cut"] == [4800]


class TestPipes:
    def test_a_command_that_does_not_read_stdin_is_fine(self) -> None:
        big = a_turn(body="x" * 4_000_000)
        assert run(shell("exec 0<&-; sleep 0.1; echo ok"), turn=big) == Ack(answer="ok")
        assert run(shell("echo ok"), turn=big) == Ack(answer="ok")

    def test_megabytes_both_ways_do_not_deadlock(self) -> None:
        script = (
            "import sys\n"
            "sys.stdout.write('o' * 5_000_000); sys.stderr.write('e' * 5_000_000)\n"
            "sys.stdin.read()"
        )
        with capture_logs() as logs:
            outcome = run(python(script), turn=a_turn(body="x" * 4_000_000))
        assert isinstance(outcome, Ack) and outcome.answer == "o" * 1024 * 1024
        assert "handler_answer_cut" in [entry["event"] for entry in logs]

    def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_turn(self, tmp_path: Path) -> None:
        pid = tmp_path / "pid"
        started = time.monotonic()
        outcome = run(shell(f"sleep 60 & echo $! > {pid}; echo done"))
        assert outcome == Ack(answer="done") and time.monotonic() - started < 5
        gone([pid])  # it was in the command's group

    @pytest.mark.field("C44")
    def test_a_daemon_that_left_the_group_does_not_hold_the_turn(self, tmp_path: Path) -> None:
        setsid = shutil.which("setsid")
        assert setsid is not None
        pid = tmp_path / "pid"
        script = f"{setsid} /bin/sh -c 'echo $$ > {pid}; exec sleep 60' & "
        script += f"while ! [ -s {pid} ]; do sleep 0.01; done; echo done"
        started = time.monotonic()
        assert run(shell(script)) == Ack(answer="done")
        assert time.monotonic() - started < 5
        os.kill(pid_in(pid), signal.SIGKILL)

    def test_no_file_descriptor_is_left(self) -> None:
        async def play() -> None:
            handler = build_handler(HandlerSpec(command=shell("sleep 60 & echo hi"), timeout_s=5))
            await handler(a_turn())
            before = psutil.Process().num_fds()
            big = a_turn(body="x" * 1_000_000)
            for _ in range(3):
                assert await handler(big) == Ack(answer="hi")
            await until(lambda: psutil.Process().num_fds() <= before)

        asyncio.run(play())


class TestEnding:
    @pytest.mark.field("C04")
    def test_a_timeout_ends_the_whole_group(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("crewlet.handlers.process.TERM_GRACE_S", 0.2)
        pids = [tmp_path / "one", tmp_path / "two"]
        script = f"trap '' TERM; (echo $BASHPID; exec sleep 60) & echo $! > {pids[1]};"
        script += f" echo $$ > {pids[0]}; while true; do sleep 0.05; done"
        assert run(shell(script), timeout_s=0.3) == TimedOut("timeout after 0.3 s")
        gone(pids)

    def test_a_command_may_clean_up_at_its_timeout(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        script = f"trap 'echo clean > {mark}; exit 0' TERM; while true; do sleep 0.02; done"
        assert run(shell(script), timeout_s=0.3) == TimedOut("timeout after 0.3 s")
        assert mark.read_text() == "clean\n"

    def test_cancellation_ends_the_group_and_goes_on(self, tmp_path: Path) -> None:
        pid = tmp_path / "pid"

        async def play() -> None:
            spec = HandlerSpec(command=shell(f"echo $$ > {pid}; exec sleep 60"), timeout_s=60)
            call = asyncio.create_task(build_handler(spec)(a_turn()))
            await until(lambda: written(pid))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(call, 3)
            assert not alive(pid_in(pid))

        asyncio.run(play())

    def test_a_second_cancellation_does_not_wait_for_the_grace(self, tmp_path: Path) -> None:
        pid = tmp_path / "pid"
        script = f"trap '' TERM; echo $$ > {pid}; while true; do sleep 0.05; done"

        async def play() -> None:
            spec = HandlerSpec(command=shell(script), timeout_s=60)
            call = asyncio.create_task(build_handler(spec)(a_turn()))
            await until(lambda: written(pid))
            call.cancel()
            await asyncio.sleep(0.05)
            started = time.monotonic()
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled() and time.monotonic() - started < 1
            await until(lambda: not alive(pid_in(pid)))

        asyncio.run(play())

    @pytest.mark.field("C17")
    def test_a_command_leads_a_session_of_its_own(self) -> None:
        outcome = run(python("import os; print(os.getpid(), os.getpgrp(), os.getsid(0))"))
        assert isinstance(outcome, Ack) and outcome.answer is not None
        pid, group, session = outcome.answer.split()
        assert pid == group == session

    @pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
    def test_it_dies_with_a_killed_node(self, tmp_path: Path) -> None:
        pid = tmp_path / "pid"
        script = f"""
import asyncio
from crewlet.company import HandlerSpec
from crewlet.handlers import build_handler
from handler_turns import a_turn
command = ("/bin/sh", "-c", "echo $$ > {pid}; exec sleep 60")
asyncio.run(build_handler(HandlerSpec(command=command, timeout_s=60))(a_turn()))
"""
        node = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent)
        try:
            asyncio.run(until(lambda: written(pid), 15))
            assert alive(pid_in(pid))
        finally:
            node.kill()
            node.wait()
        gone([pid])

    @pytest.mark.field("C44")
    def test_no_zombie_is_left(self) -> None:
        async def play() -> None:
            handler = build_handler(HandlerSpec(command=("true",), timeout_s=5))
            for _ in range(20):
                assert await handler(a_turn()) == Ack()
            assert psutil.Process().children() == []

        asyncio.run(play())


class TestEnvironment:
    def test_the_turn_is_named_and_the_company_s_secrets_are_not_there(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CREWLET_GITHUB_SECRET", "s3cret")
        monkeypatch.setenv("HOOK", "s3cret")
        monkeypatch.setenv("TRACEPARENT", "the node's own")
        monkeypatch.setenv("PLAIN", "kept")
        outcome = run(("env",), secrets=["s3cret"])
        assert isinstance(outcome, Ack) and outcome.answer is not None
        lines = outcome.answer.splitlines()
        assert "CREWLET_TURN_ID=t-1" in lines and "CREWLET_SEAT=dev" in lines
        assert f"TRACEPARENT={a_turn().traceparent}" in lines and "PLAIN=kept" in lines
        assert "s3cret" not in outcome.answer

    def test_it_runs_where_the_company_file_lies(self, tmp_path: Path) -> None:
        program = tmp_path / "work"
        program.write_text("#!/bin/sh\npwd\n")
        program.chmod(0o755)
        assert run(("./work",), folder=tmp_path) == Ack(answer=str(tmp_path.resolve()))


class TestPrograms:
    def test_one_that_is_not_on_the_path_is_a_nak(self) -> None:
        with capture_logs() as logs:
            outcome = run(("no-such-program-here",))
        assert isinstance(outcome, Nak)
        assert outcome.reason.startswith("cannot start no-such-program-here: FileNotFoundError")
        assert "handler_program_missing" in [entry["event"] for entry in logs]

    def test_one_that_has_no_format_is_a_nak(self, tmp_path: Path) -> None:
        program = tmp_path / "work"
        program.write_bytes(b"\x00\x01")
        program.chmod(0o755)
        outcome = run((str(program),))
        assert isinstance(outcome, Nak) and "cannot start" in outcome.reason

    @pytest.mark.parametrize("command", [("/no/such/program",), ("/etc",), ("a", "b\0"), ("",)])
    def test_a_wrong_argv_is_refused_when_it_is_built(self, command: tuple[str, ...]) -> None:
        with pytest.raises(ConfigError):
            build_handler(HandlerSpec(command=command), on_overdue=Overdue())


def test_thirty_at_once_keep_apart() -> None:
    async def play() -> None:
        handler = build_handler(HandlerSpec(command=shell("echo $CREWLET_TURN_ID"), timeout_s=20))
        turns = [a_turn(f"t-{n}", seat=f"s{n}") for n in range(30)]
        outcomes = await asyncio.gather(*(handler(turn) for turn in turns))
        assert outcomes == [Ack(answer=turn.turn_id) for turn in turns]

    asyncio.run(play())
