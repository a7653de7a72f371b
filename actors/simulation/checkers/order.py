"""In which order, and what a partition's outcome touches: S13, S14, S16, S17, S18, S21."""

from __future__ import annotations

from msgspec import Struct

from actors.machines.budget import backoff_s
from actors.simulation.checkers.checker import CORRUPT, Checker, Fail, Rules, who
from actors.simulation.history import Record
from actors.simulation.links import AGAIN

Place = tuple[str, int]


class Out(Struct):
    """A message that was handed out in one fetch of one process's attachment, and not settled."""

    fetch: tuple[str, int, int]
    msg: str
    started: bool = False


class Turn(Struct):
    """A turn as it began; its letters follow."""

    key: str
    fence: int
    node: str
    places: list[Place]
    counts: list[int]
    last: float = float("-inf")

    def counts_of(self, place: Place) -> list[int]:
        """Which deliveries of it lie in this turn."""
        both = zip(self.places, self.counts, strict=True)
        return [count for other, count in both if other == place]


class Outcome(Struct, frozen=True):
    """What a turn came to, and with how many failures of that message by then. `heard`: for certain
    by whoever settles its mail."""

    code: str = "nothing"
    least: int = 1
    most: int = 1
    heard: bool = True


class RunBack:
    """What goes back in one settlement. It is in order where positions rise; or else where, in each
    conversation, timestamps do, and conversations stand by their oldest - of two drains at most,
    so that this may begin anew once."""

    def __init__(self, batch: tuple[float, str, int]) -> None:
        self.batch = batch
        self._rises = True
        self._by_age = True
        self._seq = 0
        self._key: str | None = None
        self._stamp = self._oldest = float("-inf")
        self._anew = 1

    def breaks(self, key: str, stamp: float, seq: int) -> bool:
        """Take the next; True once neither order holds any more."""
        self._rises = self._rises and seq > self._seq
        self._seq = seq
        if key != self._key:
            if stamp < self._oldest:
                self._anew -= 1
            self._key, self._oldest = key, stamp
        elif stamp < self._stamp:
            self._by_age = False
        self._stamp = stamp
        return not self._rises and not (self._by_age and self._anew >= 0)


class Order(Checker):
    """Keys and timestamps come from what was published."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._keys: dict[tuple[str, str], str] = {}
        self._stamps: dict[tuple[str, str], float] = {}
        self._out: dict[Place, Out] = {}
        self._fetched: dict[tuple[str, str, int, int], dict[Place, None]] = {}
        self._gone: dict[Place, None] = {}
        self._back: dict[str, dict[int, None]] = {}
        self._run_back: dict[str, RunBack] = {}
        self._skipped: dict[tuple[str, str], tuple[float, float]] = {}
        self._turn: dict[str, Turn] = {}
        self._outcome: dict[tuple[str, str, int, int], Outcome] = {}
        self._cut_from: dict[str, float] = {}
        self._failures: dict[tuple[str, str, int], tuple[int, int]] = {}

    def on_pub_req(self, record: Record) -> None:
        self._keys[record.seat, record.msg] = record.key
        self._stamps[record.seat, record.msg] = record.sent

    # -- S13 ------------------------------------------------------------------------------

    def on_deliver(self, record: Record) -> None:
        place = record.seat, record.seq
        back = self._back.get(record.seat)
        if back and record.dc == 1:
            first = next(iter(back))
            self.fail("S13", f"{record.msg} is new, and comes before {first}, which went back")
        if back:
            back.pop(record.seq, None)
        self._take(place)
        fetch = who(record), record.fence, record.pos
        self._out[place] = Out(fetch, record.msg)
        self._fetched.setdefault((record.seat, *fetch), {})[place] = None

    def on_defer(self, record: Record) -> None:
        """Together they go back as they would have been worked, or as they lay in the mailbox. What
        another had settled by then is not there to go back."""
        if (record.seat, record.seq) in self._gone:
            self._take((record.seat, record.seq))
            return
        run = self._run_back.get(record.seat)
        if run is None or run.batch != (record.t, who(record), record.pos):
            run = self._run_back[record.seat] = RunBack((record.t, who(record), record.pos))
        name = record.seat, record.msg
        if record.code != AGAIN and run.breaks(
            self._keys.get(name, ""), self._stamps.get(name, 0.0), record.seq
        ):
            self.fail("S13", f"{record.seat}: {record.seq} goes back out of its order")
        mine = who(record), record.seat, record.seq, record.dc
        outcome = self._outcome.get(mine, Outcome())
        if record.code != AGAIN and outcome.code == "nak" and outcome.heard:
            self.fail("S14", f"{record.msg} failed, and goes back to the head")
        self._back.setdefault(record.seat, {})[record.seq] = None
        self._take((record.seat, record.seq))

    def on_fault(self, record: Record) -> None:
        if record.code == "broker_restart":  # its queue of redeliveries was in its memory
            self._back.clear()
        if record.code == "leave":
            self._cut_from[who(record)] = record.t + self.rules.drain_s * (1 - self.rules.drift)

    # -- S14, S16 -------------------------------------------------------------------------

    def on_nak(self, record: Record) -> None:
        if record.code == AGAIN:
            self._take((record.seat, record.seq))
            return
        # Also what was on its way since before the seat changed hands, and went back since.
        self._back.get(record.seat, {}).pop(record.seq, None)
        mine = who(record), record.seat, record.seq, record.dc
        outcome = self._outcome.get(mine, Outcome())
        if outcome.code != "nak":
            self.fail("S16", f"{record.msg} is retried; its turn came to {outcome.code}")
            return
        failures = range(outcome.least, outcome.most + 1)
        wanted = [backoff_s(n, self.rules.backoff) for n in failures]
        if not any(abs(record.sent - one) <= 1e-6 for one in wanted):
            self.fail("S14", f"{record.msg} waits {record.sent:g} s after {outcome.most} failures")
        self._take((record.seat, record.seq))

    def on_ack(self, record: Record) -> None:
        self._forget(record)

    def on_dlq(self, record: Record) -> None:
        self._forget(record)

    def _forget(self, record: Record) -> None:
        place = record.seat, record.seq
        self._gone[place] = None
        self._take(place)
        self._failures.pop((who(record), *place), None)
        if back := self._back.get(record.seat):
            back.pop(record.seq, None)

    def _take(self, place: Place) -> None:
        out = self._out.pop(place, None)
        if out is not None:
            batch = self._fetched.get((place[0], *out.fetch))
            if batch is not None:
                batch.pop(place, None)
                if not batch:
                    del self._fetched[place[0], *out.fetch]

    # -- S17, S18, S21 --------------------------------------------------------------------

    def on_turn_start(self, record: Record) -> None:
        self._turn[who(record) + record.seat] = Turn(record.key, record.fence, who(record), [], [])
        if record.pos > self.rules.max_batch:
            self.fail("S18", f"{record.seat}: a turn of {record.pos} letters")

    def on_turn_letter(self, record: Record) -> None:
        turn = self._turn.get(who(record) + record.seat)
        if turn is None:
            return
        if record.code not in ("", "unread", record.seat):
            self.fail("S21", f"{record.msg} of {record.code} is worked by {record.seat}")
        known = self._keys.get((record.seat, record.msg), turn.key)
        if known != turn.key:
            self.fail("S17", f"{record.msg} of {known} is worked with {turn.key}")
        if record.sent < turn.last:
            self.fail("S17", f"{record.msg} comes after what is younger, in {turn.key}")
        turn.last = record.sent
        place = record.seat, record.seq
        if not turn.places:
            self._oldest_first(place, record, turn)
        turn.places.append(place)
        turn.counts.append(record.dc)
        if out := self._out.get(place):
            out.started = True

    def _oldest_first(self, place: Place, record: Record, turn: Turn) -> None:
        """Of what came in one fetch, no conversation waits that is older than this one."""
        out = self._out.get(place)
        if out is None or out.fetch[0] != turn.node:
            return
        t, stamp = self._skipped.get((turn.node, record.seat), (-1.0, 0.0))
        oldest = min(record.sent, stamp) if t == record.t else record.sent
        for other in self._fetched.get((place[0], *out.fetch), ()):
            waiting = self._out[other]
            if waiting.started or waiting.msg.startswith(CORRUPT):
                continue
            name = record.seat, waiting.msg
            if self._keys.get(name) != turn.key and self._stamps.get(name, 1e18) < oldest:
                self.fail("S17", f"{record.msg} starts before {waiting.msg}, which is older")

    def on_skip(self, record: Record) -> None:
        """What the ledger has needs no turn, and still gave its conversation its place."""
        t, stamp = self._skipped.get((who(record), record.seat), (-1.0, 0.0))
        oldest = min(stamp, record.sent) if t == record.t else record.sent
        self._skipped[who(record), record.seat] = record.t, oldest
        if out := self._out.get((record.seat, record.seq)):
            out.started = True

    def on_turn_end(self, record: Record) -> None:
        """Failures are counted in one tenure: whoever takes over begins anew. A message that lies
        in a turn twice fails twice. Past a drain's bound the cut may overtake an end."""
        turn = self._turn.pop(who(record) + record.seat, None)
        if turn is None:
            return
        heard = record.t < self._cut_from.get(who(record), float("inf"))
        for place in dict.fromkeys(turn.places):
            times = turn.places.count(place)
            fence, before = self._failures.get((who(record), *place), (record.fence, 0))
            before = before if fence == record.fence else 0
            if record.code == "nak":
                self._failures[who(record), *place] = record.fence, before + times
            came = Outcome(record.code, before + 1, before + times, heard)
            for count in turn.counts_of(place):
                self._outcome[who(record), *place, count] = came
