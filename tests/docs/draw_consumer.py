"""Draw the consumer machine into docs/reference/consumer.md, by walking it.

`python -m tests.docs.draw_consumer` writes the page; a test holds it to the code. Every input
is tried in every situation that the machine can get into with at most two conversations in
hand; what is drawn is what happened.
"""

from __future__ import annotations

import copy
from collections import deque
from pathlib import Path

from actors.delivery import Ack, BatchOptions, Defer, Delivery, Letter, Mailbox, Nak
from actors.machines import signals
from actors.machines.consumer import RESUME, RETRY_PULL, Consumer, IllegalInput, State

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "consumer.md"
BOX = Mailbox("topic", "group")
LINGER = BatchOptions(max_batch=3, linger_s=1.0)
MOST_STEPS = 9

Transition = tuple[str, str, str]


def letter(position: int, key: str) -> Letter:
    delivery = Delivery(BOX, b"", 1, position, str(position))
    return Letter(delivery, str(position), key, float(position), None)


def inputs(machine: Consumer) -> list[tuple[str, signals.Input]]:
    number = machine._number
    one, two = (letter(1, "a"),), (letter(1, "a"), letter(2, "b"))
    return [
        ("attached", signals.Attached(LINGER)),
        ("pulled nothing", signals.Pulled((), 5.0, LINGER)),
        ("pulled some", signals.Pulled(one, 0.0, LINGER)),
        ("pulled the rest", signals.Pulled(two, 5.0, LINGER)),
        ("pull failed", signals.PullFailed()),
        ("ended: ack", signals.Ended(number, Ack())),
        ("ended: nak", signals.Ended(number, Nak("no"))),
        ("ended: defer", signals.Ended(number, Defer("later"))),
        ("settled", signals.Settled()),
        ("timer: retry the pull", signals.Fired(RETRY_PULL)),
        ("timer: resume", signals.Fired(RESUME)),
        ("quiesce", signals.Quiesce()),
        ("unquiesce", signals.Unquiesce()),
        ("hold", signals.Hold("x")),
        ("lift", signals.Lift("x")),
        ("pause", signals.Pause()),
        ("drain", signals.Drain()),
        ("cut", signals.Cut()),
        ("detach", signals.Detach()),
    ]


def situation(machine: Consumer) -> tuple[object, ...]:
    """What tells two situations apart, as far as the page is concerned."""
    return (
        machine.state,
        machine.attached,
        machine.quiesced,
        machine.deferred,
        machine.paused,
        bool(machine.holds),
        machine._bound,
        machine._leaving,
        machine._recalled,
        machine._unsettled,
        machine._running is not None,
        len(machine._waiting),
        min(2, len(machine._collection)),
    )


def walk() -> dict[Transition, list[str]]:
    """(state, input, next state) and the kinds of effects that came of it, each once."""
    found: dict[Transition, list[str]] = {}
    begin = Consumer()
    seen = {situation(begin): None}
    todo = deque([(begin, 0)])
    while todo:
        machine, steps = todo.popleft()
        for name, given in inputs(machine):
            after = copy.deepcopy(machine)
            try:
                effects = after.step(given)
            except IllegalInput:
                continue
            _note(found, (machine.state.value, name, after.state.value), effects)
            if situation(after) not in seen and steps < MOST_STEPS:
                seen[situation(after)] = None
                todo.append((after, steps + 1))
    return found


def _note(
    found: dict[Transition, list[str]], transition: Transition, effects: list[signals.Effect]
) -> None:
    kinds = " ".join(_word(effect) for effect in effects) or "-"
    noted = found.setdefault(transition, [])
    if kinds not in noted:
        noted.append(kinds)


def _word(effect: signals.Effect) -> str:
    if isinstance(effect, signals.Settle):
        return "settle!" if effect.confirmed else "settle"
    names = {"StartTimer": "start-timer", "StopTimer": "stop-timer"}
    kind = type(effect).__name__
    return names.get(kind, kind.lower())


def page() -> str:
    found = walk()
    lines = [
        "# The consumer, in states",
        "",
        "Drawn from the machine by `python -m tests.docs.draw_consumer`; a test holds this page",
        "to the code. Brakes (quiesced, deferred, paused, holds, detached) lie over the states and",
        "are none themselves. `settle!` is a settlement that is waited for, `settle` one that is",
        "only said.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> detached",
        *_arrows(found),
        "```",
        "",
        "What an input can lead to, and what is done then:",
        "",
    ]
    for state in State:
        rows = [(t, kinds) for t, kinds in found.items() if t[0] == state.value]
        lines += [f"## {state.value}", "", "| input | next | effects, one line a case |"]
        lines += ["| --- | --- | --- |"]
        for (_, name, after), kinds in sorted(rows):
            lines.append(f"| {name} | {after} | {'<br>'.join(sorted(kinds))} |")
        lines.append("")
    return "\n".join(lines)


def _arrows(found: dict[Transition, list[str]]) -> list[str]:
    """One arrow from state to state, named by the inputs of the ordinary course."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, name, after in sorted(found):
        if state != after:
            arrows.setdefault((state, after), []).append(name)
    return [
        f"    {state} --> {after}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}"
        for (state, after), names in arrows.items()
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
