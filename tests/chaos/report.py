"""The table of a run."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.run import Outcome


def table(outcome: Outcome) -> str:
    """One line for each thing, the bad news last."""
    return "\n".join(f"{name:<26} {text}" for name, text in _rows(outcome))


def _rows(outcome: Outcome) -> Iterator[tuple[str, str]]:
    wanted, verdicts = outcome.wanted, outcome.verdicts
    yield "seed", str(wanted.seed)
    yield (
        "fleet",
        f"{wanted.nodes} nodes, {wanted.seats} seats, {wanted.servers} nats-server(s), "
        f"{'in network namespaces' if wanted.networks else 'on the loopback'}, "
        f"{outcome.boots} processes in all",
    )
    yield "took", f"{outcome.took_s:.0f} s"
    for kind, where in outcome.faults.items():
        told = ", ".join(f"{how} {n}" for how, n in sorted(where.items()))
        yield kind, f"{sum(where.values())} ({told})"
    for missing in wanted.missing:
        yield "missing", missing
    yield "messages", f"{verdicts.sent} sent, {verdicts.completed} completed, {verdicts.dead} dead"
    yield "by node", ", ".join(f"{node} {n}" for node, n in sorted(verdicts.by_node.items()))
    yield "started again", f"{verdicts.again} messages, {verdicts.zombies} turns of zombies"
    numbers = sorted(outcome.revisions.items())
    yield "revisions", ", ".join(f"{node} {number}" for node, number in numbers) or "none told"
    yield "hands", f"{outcome.moves} rows of seats written"
    yield "crash takeover", _times(outcome.crash)
    yield "crash takeover, clean", _times(outcome.crash_clean)
    yield "release to claim", _times(outcome.ownerless)
    yield "release to turn", _times(outcome.graceful)
    yield "errors logged", ", ".join(f"{n} {e}" for e, n in sorted(outcome.said.items())) or "none"
    for name in ("lost", "doubled", "unexpected", "stale", "both"):
        which = getattr(verdicts, name)
        yield name, f"{len(which)}" + (f"  {which[:5]}" if which else "")
    for wrong in outcome.wrong:
        yield "WRONG", wrong


def _times(of: dict[str, float]) -> str:
    if not of:
        return "none"
    return f"p50 {of['p50']:.3f} s, p99 {of['p99']:.3f} s, max {of['max']:.3f} s of {of['n']:.0f}"
