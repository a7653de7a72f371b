"""Golden transcripts: `scenarios/*.txt` tell what a consumer does, in words.

`> ...` is an input, the indented lines under it are the effects, in their order. Mail stands as
POSITION:CONVERSATION@TIMESTAMP#DELIVERY. `and wait` is a settlement that has to be confirmed
before anything else happens. A comment (`#`) says what to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from consumer_caller import letter

from actors.delivery import (
    Ack,
    BatchOptions,
    Dead,
    Defer,
    Done,
    HandBack,
    Letter,
    Nak,
    Outcome,
    Partly,
    Retry,
    Verdict,
)
from actors.machines import signals
from actors.machines.consumer import Consumer

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


class Play:
    """Reads a scenario's inputs, steps a consumer, and writes what it did."""

    def __init__(self) -> None:
        self.consumer = Consumer()
        self.options = BatchOptions()

    def transcript(self, text: str) -> str:
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("> options "):
                self.options = options_of(line.split()[2:])
                lines.append(line)
            elif line.startswith("> "):
                effects = self.consumer.step(self.input_of(line[2:]))
                lines += [line, *(f"    {told(effect)}" for effect in effects)]
            elif not line.startswith("    "):
                lines.append(line)
        return "\n".join(lines) + "\n"

    def input_of(self, line: str) -> signals.Input:
        verb, *words = line.split()
        return INPUTS[verb](self, words)

    def attached(self, words: list[str]) -> signals.Input:
        if words:
            self.options = options_of(words)
        return signals.Attached(self.options)

    def pulled(self, words: list[str]) -> signals.Input:
        *mail, _, now = words  # ... at SECONDS
        letters = tuple(letter_of(word) for word in mail if word != "nothing")
        return signals.Pulled(letters, float(now), self.options)

    def ended(self, words: list[str]) -> signals.Input:
        outcome = OUTCOMES[words[-1]]
        if len(words) == 2:
            return signals.Ended(int(words[0]), outcome)
        done = words[1].removeprefix("done=").split(",")  # ... and the rest OUTCOME
        return signals.Ended(int(words[0]), Partly(tuple(f"e{one}" for one in done), outcome))


OUTCOMES: dict[str, Outcome] = {"ack": Ack(), "nak": Nak("boom"), "defer": Defer("busy", 5.0)}

INPUTS: dict[str, Callable[[Play, list[str]], signals.Input]] = {
    "attached": Play.attached,
    "pulled": Play.pulled,
    "ended": Play.ended,
    "pull-failed": lambda _, words: signals.PullFailed(),
    "settled": lambda _, words: signals.Settled(),
    "fired": lambda _, words: signals.Fired(words[0]),
    "quiesce": lambda _, words: signals.Quiesce(),
    "unquiesce": lambda _, words: signals.Unquiesce(),
    "hold": lambda _, words: signals.Hold(words[0]),
    "lift": lambda _, words: signals.Lift(words[0]),
    "pause": lambda _, words: signals.Pause(),
    "drain": lambda _, words: signals.Drain(),
    "cut": lambda _, words: signals.Cut(),
    "detach": lambda _, words: signals.Detach(),
}


def options_of(words: list[str]) -> BatchOptions:
    cap, linger_s = words[0].removeprefix("cap="), words[1].removeprefix("linger=")
    return BatchOptions(int(cap), float(linger_s))


def letter_of(word: str) -> Letter:
    word, _, count = word.partition("#")
    word, _, at = word.partition("@")
    position, _, key = word.partition(":")
    return letter(int(position), key, at=float(at) if at else None, count=int(count or 1))


def told(effect: signals.Effect) -> str:
    match effect:
        case signals.Pull(most=most, wait_s=wait_s):
            return f"pull up to {most}, wait {wait_s:g} s"
        case signals.Recall():
            return "recall the pull"
        case signals.Run(number=number, partition=partition):
            positions = " ".join(str(one.delivery.position) for one in partition.letters)
            return f"run {number}: {partition.key} with {positions}"
        case signals.Abandon(number=number):
            return f"abandon run {number}"
        case signals.Settle(verdicts=verdicts, confirmed=confirmed):
            words = ", ".join(f"{d.position} {verdict_of(v)}" for d, v in verdicts)
            return f"settle and wait: {words}" if confirmed else f"settle {words}"
        case signals.StartTimer(name=name, after_s=after_s):
            return f"start timer {name}: {after_s:g} s"
        case signals.StopTimer(name=name):
            return f"stop timer {name}"
        case signals.Release():
            return "release the mailbox"
        case signals.Discard(verdicts=verdicts):
            return "discard " + ", ".join(f"{d.position} {verdict_of(v)}" for d, v in verdicts)


def verdict_of(verdict: Verdict) -> str:
    match verdict:
        case Done():
            return "done"
        case Retry(delay_s=delay_s):
            return f"again in {delay_s:g} s"
        case HandBack():
            return "to the head"
        case Dead(reason=reason):
            return f"dead ({reason})"


@pytest.mark.certifies(37, 39, 43, 67, 74, 81, 83, 84)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_consumer_does_what_the_scenario_says(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert Play().transcript(text) == text


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 9
