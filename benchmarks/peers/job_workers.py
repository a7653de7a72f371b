"""The workers of task queues on Redis: each is filled while it rests, and drained on command."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any, Final

JOB: Final = "x" * 500
WAIT_S: Final = 100.0
POLL_S: Final = 0.001
PREFETCH: Final = 20
RESUMES_MS: Final = 20
"""How long a paused Dramatiq may take to notice that it is not any more; a second otherwise."""


class _Worker:
    """`_handled` is called by the worker's threads."""

    def __init__(self) -> None:
        self._left = 0
        self._lock = threading.Lock()
        self._done = threading.Event()

    def fill(self, count: int) -> float:
        self._done.clear()
        self._left = count
        self._send(count)
        return float(count)

    def drain(self, count: int) -> float:
        """Seconds until the last job was handled and the server has none left."""
        began = time.perf_counter()
        self._let_go()
        assert self._done.wait(WAIT_S), f"{self._left} of {count} jobs were not handled"
        while self._unsettled():
            time.sleep(POLL_S)
        took_s = time.perf_counter() - began
        self._rest()
        return took_s

    def _handled(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._done.set()

    def _send(self, count: int) -> None:
        raise NotImplementedError

    def _let_go(self) -> None:
        """The clock runs: work."""
        raise NotImplementedError

    def _rest(self) -> None:
        """Take nothing more until told."""

    def _unsettled(self) -> int:
        """Jobs that the server still has."""
        raise NotImplementedError


class Dramatiq(_Worker):
    """As it is by default: eight threads. It is paused while its queue is filled."""

    def __init__(self, url: str) -> None:
        super().__init__()
        import dramatiq
        from dramatiq.brokers.redis import RedisBroker

        self._broker: Any = RedisBroker(url=url)
        dramatiq.set_broker(self._broker)

        def job(text: str) -> None:
            self._handled()

        self._job: Any = dramatiq.actor(job, broker=self._broker, queue_name="jobs")
        self._worker: Any = dramatiq.Worker(self._broker, worker_timeout=RESUMES_MS)
        self._worker.start()
        self._worker.pause()

    def _send(self, count: int) -> None:
        for _ in range(count):
            self._job.send(JOB)

    def _let_go(self) -> None:
        self._worker.resume()

    def _rest(self) -> None:
        self._worker.pause()

    def _unsettled(self) -> int:
        return int(self._broker.do_qsize("jobs"))

    def close(self) -> None:
        self._worker.resume()
        self._worker.stop()


class Celery(_Worker):
    """With its solo pool, which hands a job to no other process, and acknowledgements after the
    job. It takes jobs whenever there are some: the first of each filling is a gate, which is
    opened when the clock runs. What it fetched behind the gate, twenty at most, is a present."""

    def __init__(self, url: str) -> None:
        super().__init__()
        from celery import Celery as App
        from celery.contrib.testing.worker import start_worker

        self._app: Any = App("benchmark", broker=url)
        self._app.conf.update(
            task_acks_late=True,
            task_ignore_result=True,
            worker_prefetch_multiplier=PREFETCH,
        )
        self._gate = threading.Event()

        def job(text: str) -> None:
            if text:
                self._handled()
            else:
                self._gate.wait(WAIT_S)

        self._job: Any = self._app.task(job, name="job")
        self._closing = ExitStack()
        worker = start_worker(self._app, pool="solo", perform_ping_check=False)
        self._closing.enter_context(worker)
        self._redis: Any = self._app.connection_for_read().default_channel.client

    def _send(self, count: int) -> None:
        self._gate.clear()
        for text in ("", *[JOB] * count):
            self._job.apply_async((text,))

    def _let_go(self) -> None:
        self._gate.set()

    def _unsettled(self) -> int:
        return int(self._redis.llen("celery")) + int(self._redis.hlen("unacked"))

    def close(self) -> None:
        self._gate.set()
        self._closing.close()


def open_peer(name: str, url: str) -> _Worker:
    return Celery(url) if name.startswith("celery") else Dramatiq(url)
