"""Broken twins fail the suite: a case that cannot fail shows nothing.

Each plant is a fault that a broker's author could make; the case named beside it must see it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import pytest

from actors.ports import Receipt
from actors.tenure import Fence
from crewlet.broker import (
    desk,
    memory_client,
    memory_log,
    memory_mailbox,
    memory_server,
    memory_store,
)
from crewlet.broker.desk import Answers
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_broadcast import Broadcast
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_mailbox import MemoryMailbox
from crewlet.broker.memory_questions import MemoryQuestions, MemoryServed
from crewlet.broker.memory_store import MemoryStore, Shelf
from crewlet.broker.memory_watch import MemoryWatch
from crewlet.coordination.store import LEASES, Bucket, Conflict
from crewlet.testing.conformance import broker_cases, store_cases
from tests.conformance import twin_run

CASES = {case.name: case for case in (*broker_cases, *store_cases)}
Plant = Callable[[pytest.MonkeyPatch], None]


def _replace(owner: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, value)


def _hand_back_behind(box: MemoryMailbox, position: int) -> None:
    box.retry(position, 0.01)


def _retry_at_once(box: MemoryMailbox, position: int, delay_s: float) -> None:
    box.hand_back(position)


def _free_hand_back(box: MemoryMailbox, position: int) -> None:
    box._held[position].count -= 1
    _hand_back(box, position)


def _reclaim_backwards(box: MemoryMailbox, spared: Container[int]) -> int:
    held = sorted(box._held, reverse=True)
    for position in held:
        box._requeue(position)
    return len(held)


def _bury_without_end(broker: MemoryBroker, delivery: Any, reason: str) -> None:
    broker._log.of(memory_server.topics.dead_letter(delivery.mailbox))._seen.clear()
    _bury(broker, delivery, reason)


def _publish_into_one(broker: MemoryBroker, topic: str, body: bytes, message_id: str) -> Receipt:
    boxes = broker._mailboxes.get(topic, {})
    kept = dict(list(boxes.items())[:1])
    broker._mailboxes[topic] = kept
    try:
        return _publish(broker, topic, body, message_id)
    finally:
        broker._mailboxes[topic] = boxes


def _tell_inline(broadcast: Broadcast, topic: str, body: bytes) -> None:
    for one in broadcast._subscriptions:
        if memory_server.matches(one.pattern, topic):
            one._handler(topic, body)


async def _update_blindly(
    store: MemoryStore, bucket: Bucket, key: str, value: bytes, revision: int
) -> int:
    return await store.put(bucket, key, value)


async def _create_blindly(store: MemoryStore, bucket: Bucket, key: str, value: bytes) -> int:
    return await store.put(bucket, key, value)


def _age_from_the_first_write(shelf: Shelf, key: str, value: bytes) -> int:
    since = shelf._entries.get(key)
    revision = _write(shelf, key, value)
    if since is not None:
        shelf._entries[key] = (shelf._entries[key][0], since[1])
    return revision


async def _record_unfenced(
    store: MemoryStore, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence
) -> None:
    held = await store.put(LEASES, "seat.any", b"")
    await _record(store, bucket, rows, Fence("seat:any", 1, held))


async def _record_what_is_missing(
    store: MemoryStore, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence
) -> None:
    try:
        await _record(store, bucket, rows, fence)
    except Conflict as conflict:
        left = {key: value for key, value in rows.items() if key not in conflict.keys}
        if left:
            await _record(store, bucket, left, fence)
        raise


async def _record_over(
    store: MemoryStore, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence
) -> None:
    for key, value in rows.items():
        await store.put(bucket, key, value)


def _pump_backwards(watch: MemoryWatch) -> None:
    watch._queue.reverse()
    _pump(watch)


def _serve_alone(questions: MemoryQuestions, subject: str, answer: Any) -> MemoryServed:
    served = _serve(questions, subject, answer)
    del questions._served[1:]
    return served


async def _close_at_once(served: MemoryServed) -> None:
    served.end()


async def _never_close(served: MemoryServed) -> None:
    pass


async def _ask_by_mail(
    client: MemoryClient, subject: str, body: bytes, *, wanted: int, within_s: float
) -> Any:
    client._broker.publish(subject, body, "")
    return await _ask(client, subject, body, wanted=wanted, within_s=within_s)


def _sweep_everything(box: MemoryMailbox) -> Any:
    return [box._delivery(held) for _, held in sorted(box._held.items())]


_serve, _ask, _stuck = MemoryQuestions.serve, MemoryClient.ask, MemoryMailbox.stuck
_write, _record, _pump = Shelf.write, MemoryStore.record, MemoryWatch._pump
_hand_back, _bury, _publish = MemoryMailbox.hand_back, MemoryBroker.bury, MemoryBroker.publish

PLANTS: dict[str, tuple[Plant, str]] = {
    "a hand-back goes behind": (
        _replace(MemoryMailbox, "hand_back", _hand_back_behind),
        "a_hand_back_is_confirmed_at_the_head",
    ),
    "a hand-back is free": (
        _replace(MemoryMailbox, "hand_back", _free_hand_back),
        "the_count_rises_by_one_and_outlives_the_client",
    ),
    "a retry comes back at once": (
        _replace(MemoryMailbox, "retry", _retry_at_once),
        "a_retry_goes_behind_waiting_mail_and_comes_back_on_time",
    ),
    "a cancelled fetch strands": (
        _replace(MemoryAttachment, "_give_back", lambda self, waiter: waiter.sent.clear()),
        "a_cancelled_fetch_strands_nothing",
    ),
    "a release strands": (
        _replace(MemoryAttachment, "_give_back", lambda self, waiter: waiter.sent.clear()),
        "a_release_that_races_mail_hands_it_back_in_order",
    ),
    "a recall is lost": (
        _replace(MemoryAttachment, "recall", lambda self: None),
        "a_recalled_fetch_ends_at_once_and_strands_nothing",
    ),
    "reclaim turns the order around": (
        _replace(MemoryMailbox, "reclaim", _reclaim_backwards),
        "reclaim_hands_back_in_order_and_with_counts",
    ),
    "the window is short": (
        _replace(memory_mailbox, "ACK_WINDOW_S", 60.0),
        "the_ack_window_is_thirty_minutes",
    ),
    "the broker's limit is the budget": (
        _replace(memory_mailbox, "MAX_DELIVER", 25),
        "the_broker_bounds_deliveries_above_the_budget",
    ),
    "nothing bounds deliveries": (
        _replace(memory_mailbox, "MAX_DELIVER", 10**9),
        "the_broker_bounds_deliveries_above_the_budget",
    ),
    "the same id is stored twice": (
        _replace(memory_log.Namespace, "known", lambda self, message_id, now: None),
        "a_repeated_message_id_is_stored_once",
    ),
    "a letter is stored twice": (
        _replace(MemoryBroker, "bury", _bury_without_end),
        "given_up_twice_it_is_stored_once",
    ),
    "one group takes it all": (
        _replace(MemoryBroker, "publish", _publish_into_one),
        "each_group_gets_its_own_copy",
    ),
    "any size is taken": (
        _replace(memory_server, "MAX_EVENT_BYTES", 10**9),
        "an_oversized_publish_is_refused_and_leaves_nothing",
    ),
    "a stopped client works on": (
        _replace(MemoryClient, "_check_live", lambda self: None),
        "a_stopped_client_is_not_live_for_every_verb",
    ),
    "a pattern lets all through": (
        _replace(memory_server, "matches", lambda pattern, topic: True),
        "list_knows_every_mailbox_of_a_pattern",
    ),
    "every pattern is taken": (
        _replace(
            Broadcast,
            "open",
            lambda self, pattern, handler: memory_client.MemorySubscription(self, pattern, handler),
        ),
        "a_pattern_over_every_namespace_is_refused",
    ),
    "a handler's failure is everybody's": (
        _replace(Broadcast, "tell", _tell_inline),
        "a_handler_that_raises_hurts_nobody",
    ),
    "revisions stand still": (
        _replace(Shelf, "live", lambda self, key: None),
        "what_was_created_is_there",
    ),
    "an update asks for no revision": (
        _replace(MemoryStore, "update", _update_blindly),
        "of_racing_writers_one_wins",
    ),
    "a create asks for nothing": (
        _replace(MemoryStore, "create", _create_blindly),
        "creating_what_is_there_is_a_conflict",
    ),
    "age counts from the first write": (
        _replace(Shelf, "write", _age_from_the_first_write),
        "a_value_outlives_its_last_write_by_the_age",
    ),
    "a prefix ends anywhere": (
        _replace(Shelf, "begins_with", lambda self, prefix: [e for e, _ in self._entries.values()]),
        "list_is_complete_and_by_key",
    ),
    "a completion shows no fence": (
        _replace(MemoryStore, "record", _record_unfenced),
        "a_stale_fence_is_refused_and_nothing_is_written",
    ),
    "a completion may come after the takeover": (
        _replace(MemoryStore, "record", _record_unfenced),
        "nothing_is_recorded_after_the_seat_changed_hands",
    ),
    "a completion is recorded in part": (
        _replace(MemoryStore, "record", _record_what_is_missing),
        "rows_that_are_there_stay_and_keep_the_others_out",
    ),
    "a completion overwrites another": (
        _replace(MemoryStore, "record", _record_over),
        "of_racing_completions_one_is_recorded",
    ),
    "a watch does not say what was there": (
        _replace(MemoryWatch, "again", lambda self, entries: None),
        "a_watch_hears_what_is_there_then_what_is_written",
    ),
    "a watch tells the last first": (
        _replace(MemoryWatch, "_pump", _pump_backwards),
        "a_watch_hears_what_is_there_then_what_is_written",
    ),
    "a watch tells of no deletion": (
        _replace(Shelf, "remove", lambda self, key: self._entries.pop(key, None)),
        "a_watch_hears_what_is_there_then_what_is_written",
    ),
    "a closed watch is told on": (
        _replace(MemoryWatch, "end", lambda self: None),
        "a_closed_watch_hears_nothing",
    ),
    "a watch ends with the first listener's fault": (
        _replace(MemoryWatch, "_hear", lambda self, entry: self._heard(entry)),
        "a_listener_that_raises_is_told_the_next_all_the_same",
    ),
    "any key is taken": (
        _replace(memory_store, "checked_key", lambda key: key),
        "a_bad_key_is_refused_by_every_verb",
    ),
    "only the first who serves is asked": (
        _replace(MemoryQuestions, "serve", _serve_alone),
        "every_server_answers_across_clients",
    ),
    "answers come one after another": (
        _replace(desk, "AT_A_TIME", 1),
        "a_slow_question_delays_no_other_of_its_server",
    ),
    "any number of answers at a time": (
        _replace(desk, "AT_A_TIME", 10**9),
        "sixty_four_answers_at_a_time_and_the_rest_waits",
    ),
    "closing cuts": (
        _replace(MemoryServed, "close", _close_at_once),
        "closing_waits_for_the_answers_under_way",
    ),
    "a closed server is asked": (
        _replace(MemoryServed, "close", _never_close),
        "a_closed_server_is_no_longer_asked",
    ),
    "a question is mail": (
        _replace(MemoryClient, "ask", _ask_by_mail),
        "a_mailbox_of_the_same_name_neither_sees_nor_answers",
    ),
    "an asker waits out its time": (
        _replace(Answers, "end", lambda self: None),
        "an_asker_has_as_many_answers_as_it_wants_and_at_once",
    ),
    "the sweep takes what is out": (
        _replace(MemoryMailbox, "stuck", _sweep_everything),
        "nothing_is_swept_while_anything_is_in_flight",
    ),
    "the sweep finds nothing": (
        _replace(MemoryMailbox, "stuck", lambda self: []),
        "a_message_that_the_broker_gave_up_on_becomes_one_dead_letter",
    ),
    "the sweep turns the order around": (
        _replace(MemoryMailbox, "stuck", lambda self: _stuck(self)[::-1]),
        "several_are_swept_in_order_and_without_what_was_done",
    ),
    "reasons are cut to letters": (
        _replace(memory_server, "REASON_BYTES", 8),
        "a_dead_letter_keeps_body_reason_and_count",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plant", PLANTS)
def test_the_case_sees_the_plant(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, name = PLANTS[plant]
    twin_run.run(CASES[name])
    spoil(monkeypatch)
    with pytest.raises((AssertionError, LookupError, ValueError, TimeoutError, RuntimeError)):
        twin_run.run(CASES[name])
