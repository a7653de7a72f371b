"""Python callables as handlers: outcomes, timeouts that bodies ignore, cancellation."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from handler_turns import Overdue, a_turn, until
from structlog.testing import capture_logs

from crewlet.company import HandlerSpec
from crewlet.errors import ConfigError
from crewlet.handlers import build_handler, wrap
from crewlet.handlers.outcomes import ACCEPTED, NO_RUN_ID, TimedOut
from crewlet.turn import Abandon, Ack, Answered, Defer, Nak, Suspend, Turn

NO_LIST = Nak("the handler's Answered has `shown` that is no list of messages' identities")


def outcome_of_call(function: object, timeout_s: float = 5.0) -> object:
    return asyncio.run(wrap(function, timeout_s)(a_turn()))  # type: ignore[arg-type]


class TestOutcomes:
    @pytest.mark.certifies(275)
    @pytest.mark.parametrize(
        ("returned", "expected"),
        [
            (None, Ack()),
            ("done", Ack(answer="done")),
            (Ack(answer="yes"), Ack(answer="yes")),
            (Nak("no"), Nak("no")),
            (Defer("later", 2.0), Defer("later", 2.0)),
            (7, Nak(f"the handler returned int, not {ACCEPTED}")),
            (Abandon("no"), Abandon("no")),
            (Abandon(7), Nak("the handler's Abandon does not hold text")),  # type: ignore[arg-type]
            (Answered("yes", ("m1", "m1", "m2")), Answered("yes", ("m1", "m2"))),
            (Answered(shown=["m1", ""]), Answered(None, ("m1",))),  # type: ignore[arg-type]
            (Answered(7), Nak("the handler's Answered does not hold text")),  # type: ignore[arg-type]
            (Answered("yes", "m1"), NO_LIST),  # type: ignore[arg-type]
            (Answered("yes", (7,)), NO_LIST),  # type: ignore[arg-type]
            (Suspend("r1"), Suspend("r1")),
            (Suspend("x" * 201), Nak(NO_RUN_ID)),
            (Suspend("two\nlines"), Nak(NO_RUN_ID)),
            (Suspend(17), Nak(NO_RUN_ID)),  # type: ignore[arg-type]
            (Ack(answer=7), Nak("the handler's Ack does not hold text")),  # type: ignore[arg-type]
        ],
    )
    def test_what_is_returned_becomes_an_outcome(self, returned: object, expected: object) -> None:
        def sync(turn: Turn) -> object:
            return returned

        async def coroutine(turn: Turn) -> object:
            return returned

        assert outcome_of_call(sync) == expected
        assert outcome_of_call(coroutine) == expected

    @pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), "5"])
    def test_a_defer_that_is_no_time_is_a_nak(self, seconds: float) -> None:
        outcome = outcome_of_call(lambda turn: Defer("later", seconds))
        assert isinstance(outcome, Nak)

    def test_an_answer_is_bounded_and_always_encodes(self) -> None:
        outcome = outcome_of_call(lambda turn: "é" * 1024 * 1024 + "\ud800")
        assert isinstance(outcome, Ack) and outcome.answer is not None
        assert len(outcome.answer.encode()) <= 1024 * 1024
        assert outcome.answer.endswith("[cut]")
        assert outcome_of_call(lambda turn: "a\ud800b") == Ack(answer="a?b")

    def test_partials_methods_and_objects_are_seen_for_what_they_are(self) -> None:
        class Worker:
            async def __call__(self, turn: Turn) -> str:
                return threading.current_thread().name

            async def method(self, turn: Turn) -> str:
                return threading.current_thread().name

        async def two(word: str, turn: Turn) -> str:
            return word

        main = Ack(answer=threading.current_thread().name)
        assert outcome_of_call(Worker()) == main
        assert outcome_of_call(Worker().method) == main
        assert outcome_of_call(functools.partial(two, "hi")) == Ack(answer="hi")

    def test_a_lambda_that_returns_a_coroutine_is_told_so(self) -> None:
        async def work(turn: Turn) -> None: ...

        outcome = outcome_of_call(lambda turn: work(turn))
        assert isinstance(outcome, Nak) and "async def" in outcome.reason


class TestErrors:
    @pytest.mark.certifies(45)
    @pytest.mark.parametrize("error", [ValueError("bad " * 1000), SystemExit(3), StopIteration()])
    def test_what_is_raised_is_a_nak_and_logged(self, error: BaseException) -> None:
        def sync(turn: Turn) -> None:
            raise error

        async def coroutine(turn: Turn) -> None:
            raise error

        with capture_logs() as logs:
            for function in (sync, coroutine):
                outcome = outcome_of_call(function)
                assert isinstance(outcome, Nak)
                assert outcome.reason.startswith((type(error).__name__, "RuntimeError: ")), outcome
                assert len(outcome.reason) <= 500
        if isinstance(error, ValueError):
            assert [entry["event"] for entry in logs].count("handler_raised") == 2

    def test_a_handler_that_cancels_itself_is_a_nak(self) -> None:
        async def work(turn: Turn) -> None:
            raise asyncio.CancelledError

        outcome = outcome_of_call(work)
        assert isinstance(outcome, Nak) and "cancelled itself" in outcome.reason

    def test_an_error_whose_text_raises_is_a_nak(self) -> None:
        class Rude(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        def work(turn: Turn) -> None:
            raise Rude

        assert outcome_of_call(work) == Nak("Rude")


class TestTimeouts:
    @pytest.mark.field("C23")
    def test_a_body_that_swallows_cancellation_keeps_its_seat(self) -> None:
        async def play() -> None:
            release = asyncio.Event()
            swallowed: list[str] = []

            async def stubborn(turn: Turn) -> str:
                while not release.is_set():
                    try:
                        await release.wait()
                    except BaseException:
                        swallowed.append(turn.turn_id)
                return "too late"

            overdue = Overdue()
            call = asyncio.create_task(wrap(stubborn, 0.05, on_overdue=overdue)(a_turn("t-a")))
            await until(lambda: bool(swallowed))
            assert overdue.calls == [("t-a", "timeout after 0.05 s")]
            assert not call.done()  # the seat is busy: B does not start
            release.set()
            with capture_logs() as logs:
                assert await call == TimedOut("timeout after 0.05 s")
            assert [e["ignored"] for e in logs if e["event"] == "handler_ended_late"] == ["str"]

        asyncio.run(play())

    @pytest.mark.field("C23")
    def test_a_late_ack_after_a_clean_up_is_ignored(self) -> None:
        async def tidy(turn: Turn) -> Ack:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
            return Ack(answer="cleaned up")

        assert outcome_of_call(tidy, 0.05) == TimedOut("timeout after 0.05 s")

    @pytest.mark.field("C04")
    @pytest.mark.certifies(95)
    def test_bodies_in_threads_never_overlap_and_the_loop_goes_on(self) -> None:
        async def play() -> None:
            release, spans = threading.Event(), []

            def blocking(turn: Turn) -> str:
                spans.append((turn.turn_id, "start"))
                release.wait(10)
                spans.append((turn.turn_id, "end"))
                return "late"

            overdue = Overdue()
            handler = wrap(blocking, 0.05, on_overdue=overdue)

            async def seat() -> list[object]:
                return [await handler(a_turn(turn_id)) for turn_id in ("A", "B")]

            turns = asyncio.create_task(seat())
            await until(lambda: bool(overdue.calls))
            assert spans == [("A", "start")] and not turns.done()
            release.set()
            first, second = await turns
            assert first == TimedOut("timeout after 0.05 s") and second == Ack(answer="late")
            assert [turn_id for turn_id, _ in spans] == ["A", "A", "B", "B"]

        asyncio.run(play())

    def test_no_timeout_is_no_timeout(self) -> None:
        assert outcome_of_call(lambda turn: time.sleep(0.05), 0) == Ack()

    def test_a_listener_that_raises_changes_nothing(self) -> None:
        def angry(turn_id: str, reason: str) -> None:
            raise RuntimeError

        async def work(turn: Turn) -> None:
            await asyncio.sleep(60)

        outcome = asyncio.run(wrap(work, 0.02, on_overdue=angry)(a_turn()))
        assert outcome == TimedOut("timeout after 0.02 s")


class TestCancellation:
    @pytest.mark.field("C23")
    def test_it_goes_on_at_once_though_the_body_does_not_end(self) -> None:
        async def play() -> None:
            release = asyncio.Event()
            started = asyncio.Event()
            bodies: list[str] = []

            async def stubborn(turn: Turn) -> None:
                bodies.append(turn.turn_id)
                started.set()
                while not release.is_set():
                    try:
                        await release.wait()
                    except asyncio.CancelledError:
                        continue

            handler = wrap(stubborn, 30)
            call = asyncio.create_task(handler(a_turn("t-a")))
            await started.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(call, 1)
            after = asyncio.create_task(handler(a_turn("t-b")))
            other = await asyncio.wait_for(wrap(lambda turn: None, 5)(a_turn(seat="ops")), 1)
            assert other == Ack() and bodies == ["t-a"]  # t-b waits for the stray of its seat
            with capture_logs() as logs:
                release.set()
                assert await asyncio.wait_for(after, 2) == Ack()
            assert bodies == ["t-a", "t-b"]
            assert "handler_ended_after_cancel" in [entry["event"] for entry in logs]

        asyncio.run(play())

    def test_a_seat_that_waits_for_a_stray_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("crewlet.handlers.strays.GRACE_S", 0.02)

        async def play() -> None:
            release, overdue = threading.Event(), Overdue()
            handler = wrap(lambda turn: release.wait(10) and None, 30, on_overdue=overdue)
            call = asyncio.create_task(handler(a_turn("t-a")))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            after = asyncio.create_task(handler(a_turn("t-b")))
            await until(lambda: bool(overdue.calls))
            assert overdue.calls[0][0] == "t-b" and "t-a" in overdue.calls[0][1]
            release.set()
            assert await asyncio.wait_for(after, 2) == Ack()

        asyncio.run(play())

    @pytest.mark.field("C04")
    def test_a_process_leaves_while_a_thread_still_sleeps(self) -> None:
        script = """
import asyncio, time
from crewlet.handlers import wrap
from handler_turns import a_turn
async def main():
    call = asyncio.create_task(wrap(lambda turn: time.sleep(60), 0)(a_turn()))
    await asyncio.sleep(0.05)
    call.cancel()
    await asyncio.wait({call})
    print("cancelled", call.cancelled())
asyncio.run(main())
"""
        ended = subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "cancelled True\n", "")

    @pytest.mark.field("C23")
    def test_a_process_leaves_a_coroutine_that_never_ends(self) -> None:
        script = """
import asyncio
from crewlet.handlers import Strays, wrap
from handler_turns import a_turn, until
async def stubborn(turn):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue
async def tidy(turn):
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.02)
        print("tidied up")
async def main():
    strays = Strays()
    calls = [
        asyncio.create_task(wrap(work, 0, strays=strays)(a_turn(seat)))
        for seat, work in (("t-1", stubborn), ("t-2", tidy))
    ]
    await until(lambda: len(asyncio.all_tasks()) == 5)
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    print(await strays.let_go(0.2), await strays.let_go(0.2))
asyncio.run(main())
"""
        ended = subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=20,
        )
        said = ended.stdout.splitlines()
        assert said[0] == "tidied up" and said[-1] == "('t-1',) ()", ended.stdout
        assert "handler_did_not_stop" in ended.stdout
        assert (ended.returncode, ended.stderr) == (0, "")


class TestBuilding:
    @pytest.mark.certifies(275)
    def test_a_module_beside_the_company_file_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "my_seat_work.py").write_text("async def work(turn): return turn.text\n")
        spec = HandlerSpec(python="my_seat_work:work", timeout_s=5)
        handler = build_handler(spec, on_overdue=Overdue(), folder=tmp_path)
        assert asyncio.run(handler(a_turn(body="hello"))) == Ack(answer="hello")

    @pytest.mark.parametrize(
        ("target", "said"),
        [
            ("no_such_module_here:work", "cannot be imported: ModuleNotFoundError"),
            ("crewlet.demo.handler:nothing", "has no 'nothing'"),
            ("crewlet.demo.handler:WORK_S", "is not a function"),
            ("crewlet.turn:Turn", "is not a function"),
            ("asyncio:get_running_loop", "exactly one argument"),
            ("crewlet.demo.handler", "module:function"),
            (":work", "module:function"),
        ],
    )
    def test_a_wrong_name_is_refused_with_a_sentence(self, target: str, said: str) -> None:
        with pytest.raises(ConfigError) as refused:
            build_handler(HandlerSpec(python=target), on_overdue=Overdue())
        assert said in str(refused.value)

    def test_a_handler_is_one_thing(self) -> None:
        for spec in (HandlerSpec(), HandlerSpec(python="a:b", command=("true",))):
            with pytest.raises(ConfigError):
                build_handler(spec)


@pytest.mark.certifies(275)
def test_the_demo_handler_answers_alone_and_always_the_same() -> None:
    handler = build_handler(HandlerSpec(python="crewlet.demo.handler:work", timeout_s=5))
    first = asyncio.run(handler(a_turn()))
    assert isinstance(first, Ack) and first.answer is not None
    assert "Broken build" in first.answer and "ada" in first.answer
    assert asyncio.run(handler(a_turn())) == first
