"""Thespian's own bases: all actors in the caller's thread, and a process for each actor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from thespian.actors import ActorAddress, ActorSystem, ActorTypeDispatcher

from benchmarks.peers.face import bursts, spent_elsewhere

ANSWER_S: Final = 100.0
LATER_S: Final = 3600.0


@dataclass
class Ball:
    """What is sent."""


@dataclass
class Burst:
    """The end of a burst."""


@dataclass
class Start:
    """Play with `other`; the answer to it is the end of the game."""

    other: ActorAddress
    count: int


@dataclass
class Wait:
    """Ask for so many wake-ups."""

    count: int


class Echo(ActorTypeDispatcher):
    """Sends back what it is sent."""

    def receiveMsg_Ball(self, ball: Ball, sender: ActorAddress) -> None:
        self.send(sender, ball)

    def receiveMsg_Burst(self, burst: Burst, sender: ActorAddress) -> None:
        self.send(sender, burst)

    def receiveMsg_Wait(self, wait: Wait, sender: ActorAddress) -> None:
        for n in range(wait.count):
            self.wakeupAfter(timedelta(seconds=LATER_S + n))
        self.send(sender, wait)


class Player(ActorTypeDispatcher):
    """Serves, and counts what comes back."""

    def receiveMsg_Start(self, start: Start, sender: ActorAddress) -> None:
        self.other, self.left, self.asker = start.other, start.count // 2, sender
        self.send(self.other, Ball())

    def receiveMsg_Ball(self, ball: Ball, sender: ActorAddress) -> None:
        self.left -= 1
        self.send(self.other if self.left > 0 else self.asker, ball)


class Sink(Echo):
    """Handles what it is sent."""

    def receiveMsg_Ball(self, ball: Ball, sender: ActorAddress) -> None:
        """That was it."""


class Source(ActorTypeDispatcher):
    """Sends bursts."""

    def receiveMsg_Start(self, start: Start, sender: ActorAddress) -> None:
        self.other, self.left, self.asker = start.other, bursts(start.count), sender
        self.receiveMsg_Burst(Burst(), sender)

    def receiveMsg_Burst(self, burst: Burst, sender: ActorAddress) -> None:
        if not self.left:
            self.send(self.asker, burst)
            return
        for _ in range(self.left.pop()):
            self.send(self.other, Ball())
        self.send(self.other, burst)


class Thespians:
    """One system of one base."""

    def __init__(self, base: str) -> None:
        self._system: Any = ActorSystem(base, transientUnique=True)

    def ping_pong(self, count: int) -> float:
        return self._play(Player, Echo, count)

    def one_way(self, count: int) -> float:
        return self._play(Source, Sink, count)

    def _play(self, first: type, second: type, count: int) -> float:
        one, two = self._system.createActor(first), self._system.createActor(second)
        self._asked(two, Burst())  # both are there
        return self._spent(lambda: self._asked(one, Start(two, count)))

    def ask(self, count: int) -> float:
        echo = self._system.createActor(Echo)
        self._asked(echo, Ball())

        def work() -> None:
            for _ in range(count):
                self._asked(echo, Ball())

        return self._spent(work)

    def create(self, count: int) -> float:
        def work() -> None:
            made = [self._system.createActor(Echo) for _ in range(count)]
            self._asked(made[-1], Ball())

        return self._spent(work)

    def _spent(self, work: Callable[[], None]) -> float:
        """By this process, and by those that it forked."""
        others, began = spent_elsewhere(), time.process_time()
        work()
        mine = time.process_time() - began
        return mine + spent_elsewhere() - others

    def wait_for(self, pending: int) -> None:
        self._asked(self._system.createActor(Echo), Wait(pending))

    def _asked(self, actor: ActorAddress, message: object) -> None:
        assert self._system.ask(actor, message, ANSWER_S) is not None, "no answer"

    def close(self) -> None:
        self._system.shutdown()


def open_peer(name: str) -> Thespians:
    return Thespians(name.split()[-1])
