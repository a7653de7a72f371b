"""Ids that are drawn many at a time are as random as ever, and given once."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from crewlet.events.fresh import AT_ONCE, Pool, new_id, new_span


def test_an_id_is_a_random_uuid_and_a_span_sixteen_digits() -> None:
    for _ in range(2 * AT_ONCE):
        made = uuid.UUID(text := new_id())
        assert (made.version, made.variant, str(made)) == (4, uuid.RFC_4122, text)
        assert len(span := new_span()) == 16 and int(span, 16) >= 0


def test_what_is_drawn_by_several_threads_is_drawn_once() -> None:
    pool, each = Pool(8), 20 * AT_ONCE
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(lambda: [pool.draw() for _ in range(each)]) for _ in range(4)]
        drawn = [id for future in futures for id in future.result()]
    assert len(set(drawn)) == len(drawn) == 4 * each


def test_a_process_and_one_that_it_forked_draw_others() -> None:
    pool = Pool(8)
    pool.draw()  # now the rest of the block is there, in both
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, " ".join(pool.draw() for _ in range(AT_ONCE)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        theirs = set(pipe.read().decode().split())
    assert len(theirs) == AT_ONCE
    assert theirs.isdisjoint(pool.draw() for _ in range(AT_ONCE))
