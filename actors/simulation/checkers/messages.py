"""What becomes of a message, and of a mailbox that is ensured, let go of, deleted: S6 to S12, S15
and S20."""

from __future__ import annotations

from msgspec import Struct

from actors.simulation.checkers.checker import CORRUPT, Audit, Checker, Fail, Rules, who
from actors.simulation.history import Record


class Message(Struct):
    """One message at its place in its mailbox. Times are None until it happened."""

    msg: str
    dc: int = 0
    worked: float | None = None
    dead: float | None = None
    gone: float | None = None


class Messages(Checker):
    """Every acknowledged publish is in exactly one place; nothing is removed without evidence."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._at: dict[tuple[str, int], Message] = {}
        self._seq: dict[tuple[str, str], int] = {}
        self._mailboxes: dict[str, None] = {}
        self._destroyed: dict[tuple[str, int], None] = {}
        self._asked: dict[tuple[str, str], float] = {}
        self._begun: dict[tuple[str, int], tuple[str, int]] = {}
        self._holds: dict[str, int] = {}
        self._restarted = -1.0

    # -- mailboxes ------------------------------------------------------------------------

    def on_ensure(self, record: Record) -> None:
        """What is there already stays as it is."""
        self._mailboxes[record.seat] = None
        self._compare(record, "was ensured")

    def on_detach(self, record: Record) -> None:
        """Whoever lets go of a mailbox takes none of its mail along."""
        self._compare(record, f"was let go of by {who(record)}")

    def on_delete(self, record: Record) -> None:
        self._compare(record, "was deleted")
        self._holds.pop(record.seat, None)
        self._mailboxes.pop(record.seat, None)
        for seat, seq in [place for place in self._at if place[0] == record.seat]:
            del self._at[seat, seq]
            self._destroyed[seat, seq] = None

    def _compare(self, record: Record, how: str) -> None:
        known = self._holds.get(record.seat, 0)
        if record.pos != known:
            self.fail("S20", f"{record.seat} {how}, and holds {record.pos} messages, not {known}")

    # -- published ------------------------------------------------------------------------

    def on_pub_ack(self, record: Record) -> None:
        if record.seat not in self._mailboxes:
            self.fail("S8", f"{record.msg} was accepted for {record.seat}, which has no mailbox")
            return
        if (record.seat, record.seq) not in self._at:
            self._stored(record)

    def on_pub_none(self, record: Record) -> None:
        if record.seat in self._mailboxes:
            self.fail("S8", f"{record.seat} has a mailbox, and {record.msg} was refused")

    # -- handed out -----------------------------------------------------------------------

    def on_deliver(self, record: Record) -> None:
        message = self._message(record)
        if message.msg != record.msg:
            self.fail("S15", f"{record.seat} {record.seq} is {record.msg}, and was {message.msg}")
        if record.dc <= message.dc:
            self.fail("S11", f"{record.msg} comes for the {record.dc}. time after {message.dc}")
        elif record.dc > message.dc + 1:
            paid = record.dc - message.dc - 1
            self.fail("S20", f"{record.msg} has paid for {paid} deliveries that nobody was given")
        if record.dc > self.rules.broker_limit:
            self.fail("S12", f"{record.msg} was handed out {record.dc} times")
        if message.gone is not None:
            self.fail("S7", f"{record.msg} was handed out after it was removed")
        message.dc = record.dc

    def _message(self, record: Record) -> Message:
        """What was stored and whose answer was lost on its way is known by its delivery."""
        place = record.seat, record.seq
        if place not in self._at:
            self._stored(record)
        return self._at[place]

    def _stored(self, record: Record) -> None:
        """A killed broker forgets the ids of what everybody had settled by then: such a message
        may be stored once more, and the ledger knows it."""
        name = record.seat, record.msg
        message = self._at[record.seat, record.seq] = Message(record.msg)
        self._holds[record.seat] = self._holds.get(record.seat, 0) + 1
        known = self._seq.get(name)
        before = None if known is None else self._at.get((record.seat, known))
        if before is not None:
            message.worked = before.worked
            if before.gone is None or before.gone > self._restarted:
                self.fail("S15", f"{record.msg} of {record.seat} is at {known} and {record.seq}")
        self._seq[name] = record.seq

    def on_fault(self, record: Record) -> None:
        if record.code == "broker_back":
            self._restarted = record.t

    # -- worked ---------------------------------------------------------------------------

    def on_turn_start(self, record: Record) -> None:
        self._asked[who(record), record.seat] = record.sent

    def on_turn_letter(self, record: Record) -> None:
        message = self._at.get((record.seat, record.seq))
        if message is None:
            return
        if record.dc > self.rules.budget:
            self.fail("S12", f"{record.msg} is worked at its {record.dc}. delivery")
        begun = who(record), record.dc
        if self._begun.get((record.seat, record.seq)) == begun:
            self.fail("S12", f"{record.msg} is worked again in its {record.dc}. delivery")
        self._begun[record.seat, record.seq] = begun
        asked = self._asked.get((who(record), record.seat), 0.0)
        if message.worked is not None and message.worked < asked and record.code != "unread":
            self.fail("S10", f"{who(record)} works {record.msg}, which the ledger had")

    def on_complete_ok(self, record: Record) -> None:
        message = self._by_id(record)
        if message is None:
            self.fail("S6", f"{record.msg} was completed and never published")
        elif message.worked is not None:
            self.fail("S9", f"{record.msg} was completed twice, first at {message.worked:.3f}")
        else:
            message.worked = record.t

    def on_ack(self, record: Record) -> None:
        message = self._message(record)
        if message.worked is None and message.dead is None and not record.msg.startswith(CORRUPT):
            self.fail("S7", f"{who(record)} removed {record.msg} before it was worked")
        self._gone(record, message)

    def on_dlq(self, record: Record) -> None:
        message = self._message(record)
        message.dead = record.t
        self._gone(record, message)

    def _gone(self, record: Record, message: Message) -> None:
        if message.gone is None:
            self._holds[record.seat] -= 1
        message.gone = record.t

    def _by_id(self, record: Record) -> Message | None:
        seq = self._seq.get((record.seat, record.msg))
        return None if seq is None else self._at.get((record.seat, seq))

    # -- the end --------------------------------------------------------------------------

    def end(self, audit: Audit) -> None:
        retained = {(one.seat, one.seq): one for one in audit.retained}
        for (seat, seq), message in self._at.items():
            left = retained.get((seat, seq))
            if left is None and message.gone is None:
                self.fail("S6", f"{message.msg} of {seat} is in no place")
            elif left is not None and message.gone is not None:
                self.fail("S6", f"{message.msg} of {seat} was removed and is still there")
            died = message.dead is not None and audit.letters is not None
            if died and (seat, message.msg) not in (audit.letters or ()):
                self.fail("S6", f"{message.msg} of {seat} died and left no letter")
            if left is not None and (left.stuck or left.dc >= self.rules.budget):
                self.fail("S12", f"{message.msg} of {seat} is stranded after {left.dc} deliveries")
        for place in retained:
            if place not in self._at and place not in self._destroyed:
                self.fail("S6", f"{place[0]} holds {place[1]}, which nobody published")
