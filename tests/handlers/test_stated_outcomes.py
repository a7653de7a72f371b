"""What a command states, and what it only says: an outcome comes from its file, and from nowhere
else, whatever text a model or a tool behind it prints."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from handler_turns import a_turn
from hypothesis import given
from hypothesis import strategies as st

from crewlet.company import HandlerSpec
from crewlet.handlers import build_handler, wrap
from crewlet.handlers.outcome_file import MAX_BYTES
from crewlet.handlers.outcomes import said
from crewlet.turn import Abandon, Ack, Answered, Defer, Nak, Outcome, Suspend, Unavailable

pytestmark = pytest.mark.certifies(275)

STATED: tuple[tuple[str, Outcome], ...] = (
    (
        '{"type": "unavailable", "reason": "429", "retry_after_s": 60}',
        Unavailable("429", 60.0),
    ),
    ('{"type": "suspend", "run_id": "r 1"}', Suspend("r 1")),
    ('{"type": "defer", "reason": "later"}', Defer("later")),
    ('{"type": "nak", "reason": "no"}', Nak("no")),
    ('{"type": "abandon", "reason": "declined"}', Abandon("declined")),
    ('{"type": "answered", "answer": "hi", "shown": ["m1"]}', Answered("hi", ("m1",))),
    ('{"type": "ack", "answer": "hi"}', Ack("hi")),
)


def run(script: str, *arguments: str) -> Outcome:
    command = ("/bin/sh", "-c", script, "sh", *arguments)
    handler = build_handler(HandlerSpec(command=command, timeout_s=10))
    return asyncio.run(handler(a_turn()))


def states(text: str, *, prints: str = "") -> Outcome:
    """A command that writes `text` into its file and prints something else."""
    return run('printf %s "$1" > "$CREWLET_OUTCOME"; printf %s "$2"', text, prints)


@pytest.mark.parametrize(("text", "expected"), STATED)
def test_an_outcome_is_stated_in_its_file(text: str, expected: Outcome) -> None:
    assert states(text, prints="and says this") == expected


@pytest.mark.parametrize("text", [text for text, _ in STATED])
def test_what_is_printed_is_an_answer_whatever_it_looks_like(text: str) -> None:
    assert run('printf %s "$1"', text) == Ack(text)


@given(st.sampled_from([text for text, _ in STATED]), st.text(), st.text())
def test_no_text_is_read_as_an_outcome(text: str, before: str, after: str) -> None:
    printed = f"{before}{text}{after}"
    assert said(printed) == Ack(printed.encode("utf-8", "replace").decode())


@pytest.mark.parametrize("text", [text for text, _ in STATED])
def test_what_a_function_returns_as_text_is_an_answer(text: str) -> None:
    assert asyncio.run(wrap(lambda _: text)(a_turn())) == Ack(text)


def test_an_answer_that_the_file_leaves_out_is_what_was_printed() -> None:
    assert states('{"type": "ack"}', prints=" done ") == Ack("done")
    shown = '{"type": "answered", "shown": ["m1"]}'
    assert states(shown, prints="done") == Answered("done", ("m1",))
    assert states(shown) == Answered(None, ("m1",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not fit"),
        ("done", "does not fit"),
        ('["ack"]', "does not fit"),
        ('{"type": "bug", "reason": "x"}', "abandon, ack, answered, defer"),
        ('{"type": "timed_out", "reason": "x"}', "does not fit"),
        ('{"type": "defer", "reason": 7}', "does not fit"),
        ('{"type": "suspend"}', "missing required field `run_id`"),
        ('{"type": "suspend", "run_id": ""}', "Suspend needs a run_id"),
        ('{"type": "unavailable", "reason": "x", "retry_after_s": -1}', "-1.0, not seconds"),
    ],
)
def test_a_file_that_states_no_outcome_is_a_failure_and_no_answer(text: str, why: str) -> None:
    outcome = states(text, prints="the answer")
    assert isinstance(outcome, Nak) and why in outcome.reason


def test_a_command_that_failed_has_stated_nothing() -> None:
    text = '{"type": "suspend", "run_id": "r1"}'
    assert run('printf %s "$1" > "$CREWLET_OUTCOME"; exit 3', text) == Nak("exit 3")
    assert run('printf %s "$1" > "$CREWLET_OUTCOME"; exit 75', text) == Defer("exit 75")


@pytest.mark.parametrize(
    "script",
    [
        'ln -s /etc/passwd "$CREWLET_OUTCOME"',
        'mkfifo "$CREWLET_OUTCOME"',
        'mkdir "$CREWLET_OUTCOME"',
        f'head -c {MAX_BYTES + 1} /dev/zero > "$CREWLET_OUTCOME"',
    ],
)
def test_what_cannot_be_read_is_a_failure_and_holds_up_nobody(script: str) -> None:
    outcome = run(script)
    assert isinstance(outcome, Nak) and "cannot be read" in outcome.reason
    assert len(outcome.reason) <= 500


def test_each_turn_has_a_file_of_its_own_that_is_gone_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("CREWLET_OUTCOME", "/somewhere/else")
    script = 'touch "$(dirname "$CREWLET_OUTCOME")/more"; echo "$CREWLET_OUTCOME"'
    first, second = run(script), run(script)
    assert isinstance(first, Ack) and isinstance(second, Ack) and first != second
    assert str(first.answer).startswith(str(tmp_path)) and list(tmp_path.iterdir()) == []


def test_without_room_for_the_file_the_turn_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    outcome = run("true")
    assert isinstance(outcome, Nak) and "cannot start /bin/sh" in outcome.reason
