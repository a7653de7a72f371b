"""What all clients of the twin share: mailboxes, retained messages, dead letters and buckets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from actors.delivery import Delivery, Mailbox
from actors.ports import NoMailbox, Receipt, TooLarge
from crewlet import topics
from crewlet.broker.memory_broadcast import Broadcast
from crewlet.broker.memory_log import HISTORY, MemoryLog
from crewlet.broker.memory_mailbox import Mail, MemoryMailbox
from crewlet.broker.memory_questions import MemoryQuestions
from crewlet.broker.memory_store import Shelves
from crewlet.broker.patterns import checked_pattern, matches, namespace_of
from crewlet.broker.port import DeadLetter
from crewlet.broker.seat_topics import mailbox_of, no_mailbox
from crewlet.events.envelope import MAX_EVENT_BYTES

REASON_BYTES: Final = 2048
"""The longest reason of a dead letter: with its headers it still fits the largest message."""

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f]+")

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryServer:
    """The broker's side of the twin. All methods are immediate.

    `now` is the wall clock that dates dead letters; unless told, the loop's own time counted
    from a fixed day, so that a run on a virtual loop is dated the same every time.
    """

    def __init__(self, *, now: Callable[[], datetime] | None = None) -> None:
        self.broadcast = Broadcast()
        self.questions = MemoryQuestions()
        self.shelves = Shelves()
        self._now = now or _loop_time
        self._log = MemoryLog()
        self._mailboxes: dict[str, dict[str, MemoryMailbox]] = {}
        self._letters: dict[str, DeadLetter] = {}
        self._down = False

    @property
    def down(self) -> bool:
        """The broker does not answer: verbs raise Unavailable, a fetch that waits gets nothing.
        Time goes on: delays and ack windows that end meanwhile have ended when it is back."""
        return self._down

    @down.setter
    def down(self, down: bool) -> None:
        self._down = down
        if down:
            self.questions.cut()
        for box in self._all():
            box.served = not down
            box.serve()
        if not down:
            self.shelves.came_up()

    def restart(self) -> None:
        """The broker is killed and comes back on its storage, at once. What it keeps in its
        memory only is gone: the order of what was handed back, and the ids of mail that
        everybody has settled."""
        self.down = True
        held: dict[str, set[int]] = {}
        for box in self._all():
            box.restarted()
            held.setdefault(topics.namespace(box.mailbox.topic), set()).update(box.positions)
        self._log.restarted(held)
        self.down = False

    def ensure(self, mailbox: Mailbox) -> bool:
        """Make the mailbox if it is missing. Only mail from now on is for it, also on a
        namespace that retains."""
        if not mailbox.group:
            raise ValueError(f"a mailbox on {mailbox.topic} needs a group")
        self._log.of(mailbox.topic)  # refuses what names no namespace
        boxes = self._mailboxes.setdefault(mailbox.topic, {})
        if mailbox.group in boxes:
            boxes[mailbox.group].looked_at()
            return False
        boxes[mailbox.group] = MemoryMailbox(mailbox)
        return True

    def mailbox(self, mailbox: Mailbox) -> MemoryMailbox:
        """The mailbox; NoMailbox where nobody ensured it."""
        box = self.find(mailbox)
        if box is None:
            raise NoMailbox(f"nobody ensured the mailbox {mailbox}")
        box.looked_at()
        return box

    def find(self, mailbox: Mailbox) -> MemoryMailbox | None:
        return self._mailboxes.get(mailbox.topic, {}).get(mailbox.group)

    def matching(self, pattern: str) -> list[MemoryMailbox]:
        """Mailboxes whose topic matches, by topic and group."""
        checked_pattern(pattern)
        for box in self._all():
            box.looked_at()
        found = [box for box in self._all() if matches(pattern, box.mailbox.topic)]
        return sorted(found, key=lambda box: box.mailbox)

    def delete(self, mailbox: Mailbox) -> bool:
        """Destroy a mailbox with its mail. False if there was none."""
        box = self._mailboxes.get(mailbox.topic, {}).pop(mailbox.group, None)
        if box is None:
            return False
        box.close()
        return True

    def publish(self, topic: str, body: bytes, message_id: str) -> Receipt:
        """Into every mailbox of the topic, unless the id was seen within the window."""
        namespace = self._log.of(topic)
        if len(body) > MAX_EVENT_BYTES:
            raise TooLarge(f"{len(body)} bytes on {topic}: at most {MAX_EVENT_BYTES} are taken")
        if not self._mailboxes.get(topic) and mailbox_of(topic) is not None:
            raise no_mailbox(topic)
        known = namespace.known(message_id, _loop_now())
        if known is not None:
            return Receipt(known, duplicate=True)
        position = namespace.append(topic, message_id, body, _loop_now())
        mail = Mail(position, message_id, body, self._now())
        for box in self._mailboxes.get(topic, {}).values():
            box.put(mail)
        self.broadcast.tell(topic, body)
        return Receipt(mail.position)

    def recent(self, pattern: str, most: int) -> list[tuple[str, bytes]]:
        """The newest `most` retained messages of the pattern, oldest first."""
        namespace_of(pattern)
        kept = self._log.of(_sample(pattern)).retained(_loop_now())
        found = [(one.topic, one.body) for one in kept if matches(pattern, one.topic)]
        return found[-most:] if most > 0 else []

    def bury(self, delivery: Delivery, reason: str) -> None:
        """Store a dead letter: once, however often the same delivery is given up."""
        topic = topics.dead_letter(delivery.mailbox)
        message_id = f"{topics.digest(delivery.mailbox)}:{delivery.position}"
        namespace = self._log.of(topic)
        if namespace.known(message_id, _loop_now()) is not None:
            return
        position = namespace.append(topic, message_id, delivery.body, _loop_now())
        self._letters[str(position)] = DeadLetter(
            id=str(position),
            mailbox=delivery.mailbox,
            reason=_line(reason),
            deliveries=delivery.count or 0,
            at=self._now(),
            message_id=delivery.message_id,
            body=delivery.body,
        )
        if len(self._letters) > HISTORY:
            del self._letters[next(iter(self._letters))]
        self.broadcast.tell(topic, delivery.body)

    def letters(self) -> list[DeadLetter]:
        """Dead letters, oldest first."""
        return list(self._letters.values())

    def letter(self, id: str) -> DeadLetter | None:
        return self._letters.get(id)

    def drop_letter(self, id: str) -> bool:
        return self._letters.pop(id, None) is not None

    def _all(self) -> Iterator[MemoryMailbox]:
        for boxes in self._mailboxes.values():
            yield from boxes.values()


def _line(reason: str) -> str:
    """One bounded line, as a header holds it: a reason may be a traceback."""
    flat = _BREAKS.sub(" ", reason).strip().encode(errors="replace")
    return flat[:REASON_BYTES].decode(errors="ignore")


def _sample(pattern: str) -> str:
    """A topic of the pattern's namespace."""
    return pattern.replace("*", "x").replace(">", "x")


def _loop_now() -> float:
    return asyncio.get_running_loop().time()


def _loop_time() -> datetime:
    return _EPOCH + timedelta(seconds=_loop_now())
