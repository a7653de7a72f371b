"""Whole runs: the same for the same seed, and blind to nothing that was planted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from actors.simulation.faults import Decision, Plan, plan
from actors.simulation.run import Outcome, run
from actors.simulation.sometimes import NAMES
from crewlet.broker.memory_store import MemoryStore
from crewlet.company import parse_company
from crewlet.inbound.ledger import Ledger
from crewlet.testing.simulated.campaign import Campaign, Task, play, rules_of
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import TwinSite
from crewlet.testing.simulation import Promise, simulate
from crewlet.turn import Turn
from tests.simulation import planned

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "simulation.md"
COMPANY = parse_company("""
name: Company T
roles:
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
""")


def played(this: Plan, faults_s: float = 60.0) -> Outcome:
    with quiet():
        return run(this, TwinSite, rules=rules_of(this), faults_s=faults_s)


def commanded(*arguments: str, seed: str = "0") -> Any:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "crewlet", "simulate", *arguments, "-o", "json"]
    ran = subprocess.run(line, env=env, capture_output=True, text=True, timeout=110)
    assert ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_promise_is_kept(seed: int):
    outcome = play(Task(seed, "swarm", 60.0))
    assert outcome.violations == ()
    assert outcome.handoffs > 5 and outcome.turns > 5


@pytest.mark.parametrize("seed", [1, 3])
def test_nothing_goes_wrong_any_more_once_all_is_healed(seed: int):
    """Lines were cut when a swizzle's turn came to them, though the calm had begun."""
    assert planned.played("belated", seed, 10.0).violations == ()


@pytest.mark.parametrize("seed", [1, 3, 9])
def test_what_a_broker_gives_as_it_answers_again_is_written_down(seed: int):
    """A fetch that it was given to was cut in the same instant, as all lines were made anew, and
    its mail had paid for a delivery that nobody had seen (S20)."""
    assert planned.played("restarting", seed, 10.0).violations == ()


def test_a_broker_hears_all_that_a_node_had_said_before_it_left():
    """Acknowledgements that arrive late were lost with the process that had said them and left in
    order, and their mail was out in nobody's hands (L3)."""
    left = Decision(189.44, "leave", 0, 5.566), Decision(192.287, "slow_acks", 0, 25.766)
    assert played(plan(167, "poison").only(left), 300.0).violations == ()


def test_the_same_seed_is_the_same_run_in_any_process():
    """Two processes that hash strings differently, one of them over two workers."""
    seeds = ("--seeds", "1..4", "--minutes", "0.5")
    first = commanded(*seeds, seed="0")
    second = commanded(*seeds, "--jobs", "2", seed="1")
    same = ("seeds", "handoffs", "turns", "violations", "trace_hash", "virtual_s", "sometimes")
    assert {name: first[name] for name in same} == {name: second[name] for name in same}
    campaign = Campaign()
    for seed in range(1, 5):
        campaign.add(play(Task(seed, "swarm", 30.0)), 1.0)
    assert campaign.end().trace_hash == first["trace_hash"]


def test_a_run_leaves_nothing_behind_for_the_next():
    """What a killed process was in the middle of was once cleaned up by the garbage collector,
    in the next incarnation's name or in another run."""
    alone = play(Task(141, "swarm"))
    play(Task(140, "swarm"))
    assert play(Task(141, "swarm")).digest == alone.digest


def test_the_command_says_all_that_was_promised():
    summary = commanded("--seed", "3", "--minutes", "0.5")
    wanted = {
        "seeds", "handoffs", "violations", "trace_hash", "handoffs_per_minute",
        "virtual_per_real", "sometimes", "commit",
    }  # fmt: skip
    assert wanted <= set(summary) and set(summary["sometimes"]) == set(NAMES)


def test_a_trace_is_the_run(tmp_path: Path):
    trace = tmp_path / "t.jsonl"
    commanded("--seed", "3", "--minutes", "0.2", "--trace", str(trace))
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    outcome = play(Task(3, "swarm", 12.0))
    assert len(lines) == outcome.records and lines[0]["kind"] == "ensure"


# -- what is planted is found ------------------------------------------------------------


def test_a_completion_without_a_fence_is_found(monkeypatch: pytest.MonkeyPatch):
    """M1, seen by S4: a row that nothing guarded."""
    recorded = Ledger.record

    async def unfenced(self: Ledger, seat: str, ids: Any, **about: Any) -> None:
        await recorded(self, seat, ids, **{**about, "fence": None})

    monkeypatch.setattr(Ledger, "record", unfenced)
    outcome = play(Task(1, "swarm", 60.0))
    assert {one.invariant for one in outcome.violations} == {"S4"}


def test_a_server_that_does_not_check_the_fence_is_found(monkeypatch: pytest.MonkeyPatch):
    """A process stands still in the middle of a turn, for longer than a lease lasts."""

    async def unchecked(self: MemoryStore, bucket: Any, rows: Any, fence: Any) -> None:
        shelf = await self._shelf(bucket)
        for key, value in rows.items():
            shelf.write(key, value)

    def found() -> set[str]:
        seen: set[str] = set()
        for seed in (72, 86):  # rare: most who wake let go before they complete
            base = plan(seed, faults_s=60.0)
            stops = [Decision(4.0 + n, "pause", n, 30.0, float(n)) for n in range(2)]
            outcome = played(Plan(seed, "swarm", LONG_TURNS(base), tuple(stops)))
            seen |= {one.invariant for one in outcome.violations}
        return seen

    assert found() == set()
    monkeypatch.setattr(MemoryStore, "record", unchecked)
    assert "S4" in found()


def LONG_TURNS(base: Plan) -> Any:
    from msgspec.structs import replace

    return replace(
        base.knobs, nodes=3, seats=6, publish_rate=3.0, long_turn_chance=0.6, max_batch=3,
        nak_chance=0.0, defer_chance=0.0, poison_chance=0.0, corrupt_chance=0.0, hold_back=0,
    )  # fmt: skip


def test_a_ledger_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch):
    """M10: what is recorded already is worked again."""

    async def nothing(self: Ledger, seat: str, ids: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(Ledger, "worked", nothing)
    found = {one.invariant for seed in range(1, 8) for one in play(Task(seed, "mail")).violations}
    assert found == {"S10"}


# -- an embedder's own -------------------------------------------------------------------


def test_the_guide_s_examples_run():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    tests = re.findall(r"^def (test_\w+)\(", "\n".join(blocks), re.MULTILINE)
    assert len(tests) == 4
    code = "\n".join([*blocks, *(f"{name}()" for name in tests)])
    # Of hypothesis on a busy machine: an example there has no deadline.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CI": "true"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=110
    )
    assert (ran.stdout, ran.stderr) == ("3 seeds, 0 broken promises\n", "")


def test_an_invariant_of_one_s_own_is_told_with_the_fewest_decisions():
    def nobody_is_held(record: Any) -> str | None:
        return f"{record.seat} is held" if record.kind == "hold" else None

    async def handler(turn: Turn) -> None:
        return None

    with pytest.raises(Promise, match=r"mine at .* is held") as caught:
        simulate(
            COMPANY, handler, seeds=range(40), minutes=1, profile="mail",
            invariants={"mine": nobody_is_held},
        )  # fmt: skip
    kinds = [one.kind for one in caught.value.plan.decisions]
    assert len(kinds) <= 3 and {"hold", "quiesce"} & set(kinds)


def test_a_handler_that_raises_keeps_every_promise():
    def handler(turn: Turn) -> str:
        if turn.attempt < 3:
            raise LookupError("not yet")
        return "done"

    report = simulate(COMPANY, handler, seeds=range(2), minutes=1)
    assert report.summary.turns > 10
