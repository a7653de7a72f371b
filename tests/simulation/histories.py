"""Hand-written histories, and what the checkers make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from actors.simulation.checkers import Audit, Checker, Liveness, Rules, all_checkers
from actors.simulation.history import History

Line = tuple[float, str, dict[str, Any]]
Then = Callable[[Sequence[Checker]], None]


def at(t: float, kind: str, **fields: Any) -> Line:
    return t, kind, fields


def n1(**fields: Any) -> dict[str, Any]:
    return {"node": "n1", "inc": 1, **fields}


def n2(**fields: Any) -> dict[str, Any]:
    return {"node": "n2", "inc": 1, **fields}


def judge(
    lines: Iterable[Line],
    *,
    audit: Audit | None = None,
    rules: Rules | None = None,
    then: Then = lambda checkers: None,
) -> list[str]:
    """The numbers of the promises that a history breaks, in order."""
    now = [0.0]
    broken: list[str] = []
    history = History(lambda: now[0])
    checkers = all_checkers(rules or Rules(), lambda invariant, text: broken.append(invariant))
    for checker in checkers:
        checker.listen(history)
    for t, kind, fields in lines:
        now[0] = t
        history.add(kind, **fields)
    then(checkers)
    if audit is not None:
        for checker in checkers:
            checker.end(audit)
    return broken


HELD = [
    at(0.0, "ensure", seat="dev"),
    at(0.1, "session", **n1(dc=1, sent=0.1)),
    at(0.2, "session", **n2(dc=1, sent=0.2)),
    at(0.3, "grant", **n1(seat="dev", fence=7, dc=1, pos=1)),
]
"""Two nodes, and a seat in the hands of the first."""


def published(seq: int, t: float = 1.0, key: str = "k", stamp: float | None = None) -> list[Line]:
    msg = f"m{seq}"
    sent = float(seq) if stamp is None else stamp
    return [
        at(t, "pub_req", seat="dev", msg=msg, key=key, sent=sent),
        at(t, "pub_ack", seat="dev", msg=msg, seq=seq),
    ]


def delivered(seq: int, t: float = 2.0, dc: int = 1, fetch: int = 1) -> list[Line]:
    of = {"seat": "dev", "seq": seq, "dc": dc}
    return [
        at(t, "deliver", **n1(msg=f"m{seq}", fence=1, pos=fetch, **of)),
        at(t, "got", **n1(**of)),
    ]


def started(seq: int, t: float = 3.0, dc: int = 1, key: str = "k", **more: Any) -> list[Line]:
    stamp = more.pop("stamp", float(seq))
    code = more.pop("code", "dev")
    letter = {"msg": f"m{seq}", "seq": seq, "dc": dc, "sent": stamp, "code": code}
    return [
        at(t, "turn_start", **n1(seat="dev", fence=7, key=key, pos=1, sent=t)),
        at(t, "turn_letter", **n1(seat="dev", **letter)),
    ]


def ended(t: float = 4.0, code: str = "ack") -> list[Line]:
    return [at(t, "turn_end", **n1(seat="dev", fence=7, code=code))]


def completed(seq: int, t: float = 3.9, fence: int = 7) -> list[Line]:
    return [at(t, "complete_ok", **n1(seat="dev", msg=f"m{seq}", fence=fence))]


def settled(kind: str, seq: int, t: float = 4.1, dc: int = 1, **more: Any) -> list[Line]:
    return [at(t, kind, **n1(seat="dev", msg=f"m{seq}", seq=seq, dc=dc, **more))]


def worked(seq: int) -> list[Line]:
    """All of it, as it should be."""
    turn = [*started(seq), *completed(seq), *ended()]
    return [*published(seq), *delivered(seq), *turn, *settled("ack", seq)]


CALM = [*HELD, at(10.0, "calm")]
"""... and the faults are over."""


def ticks(until: float, out: Sequence[tuple[str, int]], alive: dict[str, bool]) -> Then:
    def then(checkers: Sequence[Checker]) -> None:
        (liveness,) = [one for one in checkers if isinstance(one, Liveness)]
        for half in range(int(until * 2)):
            liveness.tick(10.0 + half / 2, out, alive)

    return then
