"""The streams and durables that keep the mail: made where they are missing, never rewritten.

A stream that exists is compared. A field that decides whether mail is kept (`SAFETY`) refuses
to run where it differs; one that decides how much is only reported (docs/contract.md 32).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from actors.delivery import Mailbox
from actors.ports import Unavailable
from crewlet import topics
from crewlet.broker import names
from crewlet.broker.api import NOT_YET, STREAM_EXISTS, STREAM_MISSING, Api, ApiError
from crewlet.coordination.store import Bucket
from crewlet.errors import BrokerRefused

log = structlog.get_logger(__name__)

Config = dict[str, Any]

SECOND: Final = 1_000_000_000
"""JetStream counts durations in nanoseconds."""

ACK_WAIT_S: Final = 1800
"""Collection (60 s at most) and one turn fit in it together (docs/contract.md 42)."""

ROUTER_ACK_WAIT_S: Final = 20
"""Of the deliveries from outside: several nodes read them at once, so that nobody may reclaim
there, and what a dead node held comes back by this alone. Routing one takes milliseconds, and
a second pass publishes nothing anew (docs/contract.md 278)."""

MAX_DELIVER: Final = 30
"""Above the client's budget of 25, which ends every message first: at its own limit the broker
stops delivering without a word and keeps the message for ever (design: measured)."""

MAX_ACK_PENDING: Final = 100_000
"""Messages of a mailbox that may be out at once, those that wait for a retry among them. The
server's default of 1,000 would let 1,000 failing messages hold up all that follow; a client
holds at most one drain of 100, so this bounds nothing but a storm of failures."""

MAX_WAITING: Final = 512

MAX_CONSUMERS: Final = 1_000_000
"""2.15 caps a stream at 1,000 consumers unless it states a positive number (-1 does not)."""

DUPLICATES_S: Final = 120
"""How long a message id is remembered: it must outlast the retries of a publish."""

DEAD_DUPLICATES_S: Final = 3600
"""A dead letter whose message could not be taken out is stored again when the ack window of
30 minutes ends: its id must still be known then."""

KEPT: Final = 16
"""Values of a key that a shared log keeps: a watch that lags hears each of so many. With one, a
renewal would take the row of a session away from whoever is about to hear of a seat taken under
it; 16 are 80 s of renewals, and a watch that lags so far takes everybody for silent anyway."""

CONFIG_AGE_S: Final = 3600

SAFETY: Final = ("subjects", "retention", "storage", "discard", "no_ack", "sealed")
"""These decide whether a message is kept at all."""

LIMITS: Final = ("max_msgs", "max_bytes", "max_msgs_per_subject", "max_age", "max_msg_size")
"""Unlimited in a mailbox stream; a limit of somebody else's would drop mail silently."""

ABILITIES: Final = ("allow_atomic", "allow_msg_ttl")
"""Without these the completion of a turn could not be fenced, or would be kept for ever."""

CAPACITY: Final = ("max_age", "max_consumers", "duplicate_window")


class Topology:
    """What this deployment's streams look like."""

    def __init__(
        self, api: Api, *, memory: bool, replicas: int, event_retention_hours: int
    ) -> None:
        self._api = api
        self._storage = "memory" if memory else "file"
        self._replicas = replicas
        self._age_s = event_retention_hours * 3600
        self._made: set[str] = set()

    @property
    def replicated(self) -> bool:
        """Several servers hold each message."""
        return self._replicas > 1

    async def provision(self) -> None:
        """Make the five streams; BrokerRefused names a stream and a field that would lose
        mail. Idempotent, also against others who do it at the same time."""
        for config in self.streams():
            await self.ensure(config)

    def has(self, topic: str) -> bool:
        """Whether the stream of a topic is known to be there."""
        name = names.stream_of(topic)
        return name in names.SUBJECTS or name in self._made

    async def ensure_for(self, topic: str) -> str:
        """The stream of a topic, made on demand where its namespace is none of ours."""
        name = names.stream_of(topic)
        if self.has(topic):
            return name
        namespace = name.removeprefix(names.on_demand("")).lower()
        await self.ensure(self._mail(name, names.subjects_on_demand(namespace)))
        return name

    def forget_of(self, topic: str) -> None:
        """`forget` of the stream of a topic."""
        self.forget(names.stream_of(topic))

    def forget(self, stream: str) -> None:
        """The stream was found missing: make it again on the next demand."""
        self._made.discard(stream)

    async def ensure(self, config: Config) -> None:
        """Create or compare one stream."""
        name = config["name"]
        present = await self._present(name)
        if present is None:
            present = await self._create(config)
        compare(config, present)
        self._made.add(name)

    def streams(self) -> list[Config]:
        return [
            self._mail(names.AGENT, [names.SUBJECTS[names.AGENT]]),
            self._mail(names.NOTIFICATIONS, [names.SUBJECTS[names.NOTIFICATIONS]]),
            self._record(names.EVENTS, self._age_s, DUPLICATES_S),
            self._record(names.CONFIG, CONFIG_AGE_S, DUPLICATES_S),
            self._record(names.DLQ, self._age_s, DEAD_DUPLICATES_S),
        ]

    async def ensure_bucket(self, bucket: Bucket) -> None:
        """The same for the stream of a bucket."""
        await self.ensure(self.bucket(bucket))

    def bucket(self, bucket: Bucket) -> Config:
        """The stream of a bucket: the last value of each key, read from the leader only."""
        log = names.log_of(bucket)
        # In a shared log each value brings its own age along.
        age = 0 if bucket.log else int((bucket.age_s or 0) * SECOND)
        return self._stream(names.bucket(log), [names.keys_in(log)], "limits") | {
            "max_age": age,
            "max_msgs_per_subject": KEPT if bucket.log else 1,
            "discard": "new",
            "deny_delete": True,
            "allow_rollup_hdrs": True,
            "allow_direct": False,
            "duplicate_window": min(DUPLICATES_S * SECOND, age or DUPLICATES_S * SECOND),
            **{ability: True for ability in ABILITIES if bucket.log},
        }

    async def last_sequence(self, stream: str) -> int:
        """Of the newest message that the stream ever had."""
        return int((await self._api.call(f"STREAM.INFO.{stream}"))["state"]["last_seq"])

    def mailbox(self, mailbox: Mailbox, start: int) -> Config:
        """The durable of a mailbox, from the sequence `start` on. Its metadata is how it is
        found again: a name is cut."""
        return {
            "durable_name": names.consumer(mailbox),
            "name": names.consumer(mailbox),
            # A mailbox holds what is published after it was made: with "all" one that is made
            # again would show what a sibling group still keeps in the stream. And not "new":
            # a server that is killed before it wrote the durable's state starts it there again,
            # behind mail that it acknowledged.
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start,
            "ack_policy": "explicit",
            "ack_wait": _ack_wait_s(mailbox) * SECOND,
            "max_deliver": MAX_DELIVER,
            "filter_subject": mailbox.topic,
            "replay_policy": "instant",
            "max_ack_pending": MAX_ACK_PENDING,
            "max_waiting": MAX_WAITING,
            "num_replicas": 0,
            # On files, like the stream, also where it has replicas: in memory it is several times
            # as fast, and kills and partitions of one server after the other, each given the time
            # to catch up, made durables jump over mail that nobody had been given; the stream
            # then dropped it (docs/reliability.md: measured on 2.15.1).
            "metadata": {"topic": mailbox.topic, "group": mailbox.group},
        }

    # -- inside ----------------------------------------------------------------------------

    def _mail(self, name: str, subjects: list[str]) -> Config:
        """Kept while a durable has not settled it; covered by none, it is dropped."""
        return self._stream(name, subjects, "interest")

    def _record(self, name: str, age_s: int, duplicates_s: int) -> Config:
        """Kept for its age, whoever reads it; direct reads serve `recent`."""
        return self._stream(name, [names.SUBJECTS[name]], "limits") | {
            "max_age": age_s * SECOND,
            "duplicate_window": duplicates_s * SECOND,
            "allow_direct": True,
        }

    def _stream(self, name: str, subjects: list[str], retention: str) -> Config:
        return {
            "name": name,
            "subjects": subjects,
            "retention": retention,
            "storage": self._storage,
            "discard": "old",
            "num_replicas": self._replicas,
            "max_age": 0,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_msgs_per_subject": -1,
            "max_msg_size": -1,
            "max_consumers": MAX_CONSUMERS,
            "duplicate_window": DUPLICATES_S * SECOND,
        }

    async def _present(self, name: str) -> Config | None:
        try:
            config: Config = (await self._api.call(f"STREAM.INFO.{name}"))["config"]
        except ApiError as error:
            if error.code == STREAM_MISSING:
                return None
            raise _refused(name, error) from error
        return config

    async def _create(self, config: Config) -> Config:
        name = config["name"]
        try:
            made: Config = (await self._api.call(f"STREAM.CREATE.{name}", config))["config"]
        except ApiError as error:
            if error.code != STREAM_EXISTS:
                raise _refused(name, error) from error
            # Somebody else was first, with other words: theirs is compared like any other.
            present = await self._present(name)
            if present is None:
                raise Unavailable(f"the stream {name} comes and goes") from error
            return present
        log.info("broker_stream_made", stream=name)
        return made


def _ack_wait_s(mailbox: Mailbox) -> int:
    return ROUTER_ACK_WAIT_S if mailbox.topic == topics.INBOUND else ACK_WAIT_S


def compare(wanted: Config, present: Config) -> None:
    """BrokerRefused for a difference that could lose mail; a log line for one of capacity."""
    name = wanted["name"]
    for field in SAFETY:
        if _field(wanted, field) != _field(present, field):
            raise _differs(name, field, wanted, present)
    for field in LIMITS:
        if wanted["retention"] == "interest" and _field(present, field) > 0:
            raise _differs(name, field, wanted, present)
    for field in ABILITIES:
        if wanted.get(field) and not present.get(field):
            raise _differs(name, field, wanted, present)
    if _field(present, "num_replicas") < wanted["num_replicas"]:
        raise _differs(name, "num_replicas", wanted, present)
    for field in CAPACITY:
        if _field(wanted, field) != _field(present, field):
            log.warning(
                "broker_stream_differs",
                stream=name,
                field=field,
                wanted=_field(wanted, field),
                present=_field(present, field),
            )


def _field(config: Mapping[str, Any], field: str) -> Any:
    """A field as it compares: absent is the server's zero, subjects have no order."""
    value = config.get(field, _ABSENT.get(field, 0))
    return sorted(value) if field == "subjects" else value


_ABSENT: Final[dict[str, Any]] = {
    "subjects": [],
    "discard": "old",
    "storage": "file",
    "retention": "limits",
    "no_ack": False,
    "sealed": False,
}


def _differs(
    stream: str, field: str, wanted: Mapping[str, Any], present: Mapping[str, Any]
) -> BrokerRefused:
    return BrokerRefused(
        f"the stream {stream} has {field} {_field(present, field)!r} and this node needs "
        f"{_field(wanted, field)!r}: it was made otherwise, and a running stream is never "
        "rewritten; move its messages and delete it, or correct the node's settings"
    )


def _refused(stream: str, error: ApiError) -> Exception:
    if error.code in NOT_YET:
        return Unavailable(f"the cluster is not complete yet: {error}")
    return BrokerRefused(f"the stream {stream} could not be made: {error}")
