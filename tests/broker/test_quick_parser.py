"""The parser in front of nats-py's says what nats-py's would have said, however a read was cut."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from crewlet.broker.quick import QuickParser
from crewlet.broker.route import Message, Route, read_headers

OURS, OURS_TOO, NOT_OURS, NOBODYS = 1, 22, 333, 4444

Heard = tuple[Any, ...]


class World:
    """An unconnected client, and all that its parser tells it, in order."""

    def __init__(self, parser: Callable[[Client], Parser]) -> None:
        self.heard: list[Heard] = []
        self.client = Client()
        for sid in (OURS, OURS_TOO):
            self.subscribe(sid, Route("a.b", self.hears(sid)))
        self.subscribe(NOT_OURS, SimpleNamespace(put_nowait=self.hears(NOT_OURS)))
        for name in ("err", "info", "ping", "pong"):
            setattr(self.client, f"_process_{name}", self.listener(name))
        self.client._ps = self.parser = parser(self.client)

    def subscribe(self, sid: int, queue: object) -> None:
        subscription = Subscription(self.client, sid, "a.b", pending_bytes_limit=0)
        subscription._pending_queue = queue  # type: ignore[assignment]
        self.client._subs[sid] = subscription

    def hears(self, sid: int) -> Callable[[Message | Msg], None]:
        def hear(one: Message | Msg) -> None:
            self.heard.append((sid, one.subject, one.reply, one.data, dict(one.headers or {})))

        return hear

    def listener(self, name: str) -> Callable[..., Any]:
        async def hear(*given: object) -> None:
            self.heard.append((name, *given))

        return hear

    def read(self, *reads: bytes) -> World:
        async def play() -> None:
            for data in reads:
                try:
                    await self.parser.parse(data)
                except ProtocolError as error:
                    self.heard.append(("refused", str(error)))
                    return

        asyncio.run(play())
        return self

    @property
    def all(self) -> object:
        return self.heard, self.client.stats["in_msgs"], self.client.stats["in_bytes"]


def msg(sid: int, data: bytes, reply: bytes = b"", subject: bytes = b"a.b") -> bytes:
    back = reply + b" " if reply else b""
    return b"MSG %s %d %s%d\r\n%s\r\n" % (subject, sid, back, len(data), data)


def hmsg(sid: int, head: bytes, data: bytes, reply: bytes = b"") -> bytes:
    back = reply + b" " if reply else b""
    sizes = b"%d %d" % (len(head), len(head) + len(data))
    return b"HMSG a.b %d %s%s\r\n%s%s\r\n" % (sid, back, sizes, head, data)


HEAD = b"NATS/1.0\r\nNats-Msg-Id: one\r\nX-A:b\r\n\r\n"
GONE = b"NATS/1.0 409 Consumer Deleted\r\nNats-Pending-Messages: 3\r\n\r\n"
EVERYTHING = (
    msg(OURS, b"one"),
    hmsg(OURS, HEAD, b"two", b"$JS.ACK.s.c.1.2.3.4.5"),
    b"PING\r\n",
    msg(OURS_TOO, b"MSG a.b 1 3\r\nno!\r\n", b"answer.here"),
    b"PONG\r\n",
    hmsg(OURS, b"NATS/1.0 404 No Messages\r\n\r\n", b""),
    msg(NOT_OURS, b"three"),
    b"-ERR 'Permissions Violation for Publish'\r\n",
    hmsg(NOT_OURS, HEAD, b"four", b"answer"),
    msg(NOBODYS, b"five"),
    b"+OK\r\n",
    hmsg(OURS_TOO, GONE, b""),
    b'INFO {"server_id": "x"}\r\n',
    msg(OURS, b""),
    b"MSG\ta.b  1   4\r\nsix.\r\n",
    msg(OURS, b"seven", b"12"),
    msg(OURS, b"eight", subject="süß".encode()),
    b"PONG\r\n",
)


def as_nats_py(*reads: bytes) -> object:
    return World(Parser).read(*reads).all


def quickly(*reads: bytes) -> object:
    return World(QuickParser).read(*reads).all


def cut(data: bytes, at: Sequence[int]) -> Iterator[bytes]:
    marks = [0, *sorted(mark % (len(data) + 1) for mark in at), len(data)]
    return (data[begin:end] for begin, end in itertools.pairwise(marks))


def test_all_that_a_server_says_is_heard_in_its_order() -> None:
    whole = World(QuickParser).read(b"".join(EVERYTHING))
    assert [heard[0] for heard in whole.heard] == [
        *(OURS, OURS, "ping", OURS_TOO, "pong", OURS, NOT_OURS, "err", NOT_OURS),
        *(OURS_TOO, "info", OURS, OURS, OURS, OURS, "pong"),
    ]
    assert whole.all == as_nats_py(*EVERYTHING)
    assert whole.parser.buf == b"" and whole.heard[1][4] == {"Nats-Msg-Id": "one", "X-A": "b"}


def test_a_read_that_ends_at_any_byte_changes_nothing() -> None:
    data, wanted = b"".join(EVERYTHING), as_nats_py(*EVERYTHING)
    for at in range(len(data) + 1):
        assert quickly(data[:at], data[at:]) == wanted, data[:at][-40:]
    assert quickly(*(data[at : at + 1] for at in range(len(data)))) == wanted


headers = st.dictionaries(
    st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True),
    st.text(st.characters(exclude_categories=("C", "Z")), max_size=8),
    max_size=3,
)


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    first = draw(st.sampled_from(["", " 100 Idle Heartbeat", " 404", " 409 Too Many Pulls"]))
    # Behind a status without words nats-py takes the first header for them.
    lines = [f"{n}: {v}" for n, v in draw(headers).items()] if first != " 404" else []
    return "\r\n".join([f"NATS/1.0{first}", *lines, "", ""]).encode()


sids = st.sampled_from((OURS, OURS_TOO, NOT_OURS, NOBODYS))
bodies = st.binary(max_size=40)
replies = st.sampled_from((b"", b"$JS.ACK.s.c.1.2.3.4.5", b"7", b"a\xc3\xa4"))
frames = st.one_of(
    st.builds(msg, sids, bodies, replies, st.sampled_from((b"a.b", b"5", "ä".encode()))),
    st.builds(hmsg, sids, heads(), bodies, replies),
    st.sampled_from(EVERYTHING),
)
malformed = st.sampled_from(
    (b"", b"FOO\r\n", b"MSG a.b 1\r\n", b"MSG a.b x 4\r\nnot.\r\n", b"\r\n", b"MSG a.b 1 -4\r\n")
    + (b"HMSG a.b 1 4\r\nnot.\r\n", b"MSG a.b 1 7 8 9\r\n", b"msg", b"MSG a.b 1 400\r\nunfinished")
)
several = st.lists(frames, max_size=12)
marks = st.lists(st.integers(min_value=0), max_size=12)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(several, malformed, marks)
def test_it_says_what_nats_py_says(sent: list[bytes], end: bytes, at: list[int]) -> None:
    assert quickly(*cut(b"".join(sent) + end, at)) == as_nats_py(*sent, end)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(several, several, marks, st.integers(min_value=0))
def test_of_a_connection_that_broke_nothing_is_left(
    before: list[bytes], after: list[bytes], at: list[int], broke: int
) -> None:
    def play(world: World) -> object:
        data = b"".join(before)
        world.read(*cut(data[: broke % (len(data) + 1)], at))
        world.parser.reset()
        return world.read(*cut(b"".join(after), at)).all

    assert play(World(QuickParser)) == play(World(Parser))


def test_what_follows_an_error_that_ends_the_connection_is_nobodys() -> None:
    def play(world: World) -> World:
        async def stale(_: str) -> None:
            world.parser.reset()  # as nats-py does when it gives a connection up

        world.client._process_err = stale  # type: ignore[method-assign]
        return world.read(msg(OURS, b"one") + b"-ERR 'Stale Connection'\r\n" + msg(OURS, b"two"))

    ours = play(World(QuickParser))
    assert [heard[3] for heard in ours.heard] == [b"one"]
    assert ours.all == play(World(Parser)).all
    assert [heard[3] for heard in ours.read(msg(OURS, b"three")).heard] == [b"one", b"three"]


def test_a_subscription_that_ends_inside_of_a_read_gets_no_more_of_it() -> None:
    world = World(QuickParser)

    def last(message: Message) -> None:
        world.hears(OURS)(message)
        del world.client._subs[OURS]

    world.subscribe(OURS, Route("a.b", last))
    world.read(msg(OURS, b"one") + msg(OURS, b"two") + msg(OURS_TOO, b"three"))
    assert [heard[3] for heard in world.heard] == [b"one", b"three"]
    assert world.client.stats["in_msgs"] == 3


def test_a_receiver_that_raises_ends_nothing() -> None:
    world = World(QuickParser)
    world.subscribe(OURS, Route("a.b", lambda message: 1 // 0))  # type: ignore[arg-type]
    world.read(msg(OURS, b"one") + msg(OURS_TOO, b"two"))
    assert [heard[3] for heard in world.heard] == [b"two"]


@pytest.mark.parametrize("sid", [OURS, NOT_OURS])
def test_a_large_message_is_joined_once(sid: int) -> None:
    looked = 0

    class Counted(QuickParser):
        def _deliver(self, data: bytes, at: int) -> int:
            nonlocal looked
            looked += 1
            return super()._deliver(data, at)

    body = bytes(range(256)) * 4096
    data = msg(OURS_TOO, b"before") + msg(sid, body, b"answer") + msg(OURS_TOO, b"behind")
    pieces = [data[at : at + 1024] for at in range(0, len(data), 1024)]
    world = World(Counted).read(*pieces)
    assert [heard[3] for heard in world.heard] == [b"before", body, b"behind"]
    assert looked <= 5, f"{len(pieces)} reads were looked through {looked} times"


def test_a_line_longer_than_nats_py_waits_for_is_waited_for() -> None:
    info = b'INFO {"server_id": "%s"}\r\n' % (b"x" * 10_000)
    data = info + msg(OURS, b"one") + b"PONG\r\n"
    for size in (100, 4096, 9_000):
        reads = [data[at : at + size] for at in range(0, len(data), size)]
        assert [heard[0] for heard in World(QuickParser).read(*reads).heard] == ["info", 1, "pong"]


@settings(derandomize=True, max_examples=300, deadline=None)
@given(heads())
def test_headers_are_read_as_nats_py_reads_them(block: bytes) -> None:
    theirs = asyncio.run(Client()._process_headers(block)) or {}
    assert read_headers(block) == theirs


def test_what_is_no_header_is_passed_over() -> None:
    block = b"NATS/1.0 \r\nnone\r\nA B: c\r\nX: one\r\n\xff: y\r\nX : \t two \xff\r\nY:\r\n\r\n"
    assert dict(read_headers(block)) == {"X": "two \ufffd", "Y": ""}
    assert read_headers(b"") == {} == read_headers(b"NATS/1.0\r\n\r\n")
