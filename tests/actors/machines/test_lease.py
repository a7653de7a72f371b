"""A node's session against a hostile world: two processes of one id, a store, peers with clocks."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lease_store import Call, Clock, Peer, Process, Store

from actors.machines import lease as machine
from actors.machines.lease import State

CLOCKS = st.builds(Clock, st.sampled_from([0.0, -1e6, 12345.5]), st.sampled_from([0.95, 1.0, 1.05]))
STEPS_S = st.sampled_from([0.01, 0.3, 1.0, 2.5, 5.0, 11.0, 16.9, 21.0, 40.0])


class World(RuleBasedStateMachine):
    @initialize(clocks=st.lists(CLOCKS, min_size=4, max_size=4))
    def build(self, clocks: list[Clock]) -> None:
        self.store = Store()
        self.processes = [Process(self.store, f"n:{i}", clocks[i]) for i in (0, 1)]
        self.peers = [Peer(self.store, clocks[i]) for i in (2, 3)]

    # -- time -------------------------------------------------------------------------

    @rule(by=STEPS_S)
    def let_time_pass(self, by: float) -> None:
        self.run_to(self.store.true + by, honest=False)

    @rule(by=STEPS_S)
    def let_time_pass_with_a_store_that_answers(self, by: float) -> None:
        self.run_to(self.store.true + by, honest=True)

    def run_to(self, until: float, *, honest: bool) -> None:
        """Wakes in their order; those of a process that is paused come when it goes on."""
        while True:
            if honest:
                self.answer_all()
            due = [
                (process.clock.when(process.wake), process)
                for process in self.processes
                if process.wake < float("inf") and not process.paused and not process.dead
            ]
            at, process = min(due, key=lambda each: each[0], default=(until, None))
            if process is None or at >= until:
                break
            self.store.true = max(self.store.true, at + 1e-9)
            self.wake(process)
            self.check()
        self.store.true = until

    def wake(self, process: Process) -> None:
        process.wake = float("inf")
        process.step(machine.Woken())

    def answer_all(self) -> None:
        for process in self.processes:
            while not process.paused and not process.dead and (call := process.awaited):
                if call.answer is None:
                    process.apply(call)
                process.answer(call)

    # -- the processes ------------------------------------------------------------------

    def able(self, which: int) -> Process | None:
        process = self.processes[which % len(self.processes)]
        return None if process.paused or process.dead else process

    @rule(which=st.integers(0, 1))
    def begin(self, which: int) -> None:
        process = self.able(which)
        if process and not process.begun:
            process.step(machine.Begin({}))

    @rule(which=st.integers(0, 1), word=st.sampled_from("xyz"))
    def say(self, which: int, word: str) -> None:
        if process := self.able(which):
            process.step(machine.About({"word": word}))

    @rule(which=st.integers(0, 1))
    def pause(self, which: int) -> None:
        self.processes[which].paused = True

    @rule()
    def go_on(self) -> None:
        for process in self.processes:
            process.paused = False

    @precondition(lambda self: self.store.true > 60 and len(self.processes) < 5)
    @rule(which=st.integers(0, 4), clock=CLOCKS, kills=st.booleans())
    def leave_or_die_and_start_again(self, which: int, clock: Clock, kills: bool) -> None:
        process = self.able(which)
        if process is None:
            return
        if kills:
            process.dead = True
        else:
            process.step(machine.Leave())
        again = Process(self.store, f"n:{len(self.processes)}", clock)
        self.processes.append(again)
        again.step(machine.Begin({}))

    # -- the store ------------------------------------------------------------------------

    def calls(self, *, answered: bool) -> list[tuple[Process, Call]]:
        return [
            (process, call)
            for process in self.processes
            for call in process.calls
            if (call.answer is not None) == answered
        ]

    @precondition(lambda self: self.calls(answered=False))
    @rule(pick=st.randoms(use_true_random=False))
    def apply(self, pick) -> None:  # type: ignore[no-untyped-def]
        process, call = pick.choice(self.calls(answered=False))
        process.apply(call)

    @rule(which=st.integers(0, 4))
    def answer(self, which: int) -> None:
        process = self.able(which)
        if process and (call := process.awaited) and call.answer is not None:
            process.answer(call)

    @rule(which=st.integers(0, 4))
    def lose(self, which: int) -> None:
        process = self.able(which)
        if process and (call := process.awaited):
            process.lose(call)

    # -- the peers ------------------------------------------------------------------------

    @rule(which=st.integers(0, 1))
    def hear(self, which: int) -> None:
        self.peers[which].hear()

    @rule(which=st.integers(0, 1))
    def end_the_silent(self, which: int) -> None:
        self.peers[which].end()

    # -- what always holds ----------------------------------------------------------------

    @invariant()
    def check(self) -> None:
        """S2: whoever may act has the row, so that nobody else was granted it meanwhile."""
        for process in self.store.processes:
            if process.believes:
                row = self.store.row
                assert row is not None and not row.released, process.owner
                assert (row.owner, row.epoch) == (process.owner, process.machine.epoch)

    def teardown(self) -> None:
        """With a store that answers, one of those that want a session has it, and goes."""
        if not hasattr(self, "store"):
            return
        self.go_on()
        for process in self.processes:
            process.calls = [call for call in process.calls if call.awaited]
            if not process.dead and not process.begun:
                process.step(machine.Begin({}))
        self.run_to(self.store.true + 100, honest=True)
        alive = [p for p in self.processes if not p.dead and p.machine.state is not State.LEFT]
        holders = [process for process in alive if process.believes]
        assert len(holders) == bool(alive)
        for process in alive:
            process.step(machine.Leave())
        self.run_to(self.store.true + 1, honest=True)
        assert all(process.left == 1 for process in alive)
        assert self.store.row is None or self.store.row.released or not alive


World.TestCase.settings = settings(
    derandomize=True,
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(272)
class TestWorld(World.TestCase):
    pass
