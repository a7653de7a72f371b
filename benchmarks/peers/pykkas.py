"""Pykka: an actor is a thread with a queue."""

from __future__ import annotations

import threading
import time
from typing import Any

import pykka

from benchmarks.peers.face import bursts


class Echo(pykka.ThreadingActor):  # type: ignore[misc]
    """Answers; sends back to whoever the message names."""

    def on_receive(self, message: Any) -> Any:
        if message is not None:
            message.tell(None)
        return message


class Player(pykka.ThreadingActor):  # type: ignore[misc]
    """Serves, and counts what comes back."""

    def on_receive(self, message: Any) -> None:
        if message is not None:
            self.other, count, self.done = message
            self.left = count // 2
        else:
            self.left -= 1
        if self.left > 0:
            self.other.tell(self.actor_ref)
        else:
            self.done.set()


class Source(pykka.ThreadingActor):  # type: ignore[misc]
    """Sends bursts."""

    def on_receive(self, message: Any) -> None:
        if message is not None:
            self.other, count, self.done = message
            self.left = bursts(count)
        if not self.left:
            self.done.set()
            return
        for _ in range(self.left.pop()):
            self.other.tell(None)
        self.other.tell(self.actor_ref)


class Pykkas:
    """Its actors are ended by name: a thread that is left keeps the process."""

    def ping_pong(self, count: int) -> float:
        return self._play(Player, count)

    def one_way(self, count: int) -> float:
        return self._play(Source, count)

    def _play(self, first: Any, count: int) -> float:
        one, two, done = first.start(), Echo.start(), threading.Event()
        began = time.process_time()
        one.tell((two, count, done))
        done.wait()
        took_s = time.process_time() - began
        one.stop()
        two.stop()
        return took_s

    def ask(self, count: int) -> float:
        echo = Echo.start()
        began = time.process_time()
        for _ in range(count):
            echo.ask(None)
        took_s = time.process_time() - began
        echo.stop()
        return took_s

    def create(self, count: int) -> float:
        began = time.process_time()
        made = [Echo.start() for _ in range(count)]
        made[-1].ask(None)
        return time.process_time() - began

    def wait_for(self, pending: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pykka.ActorRegistry.stop_all()


def open_peer(name: str) -> Pykkas:
    return Pykkas()
