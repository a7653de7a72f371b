"""One request, its rows, and exactly one end: through a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.admin import AdminClient, CallFailed, NoAnswer, NotRunning, ReaderGone
from actors.admin.frames import MAX_REQUEST_BYTES
from tests.admin.served import Served, Verbs, served


@pytest.fixture
def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
def node(tmp_path: Path, verbs: Verbs) -> Iterator[Served]:
    with served(tmp_path / "data", verbs.table()) as running:
        yield running


@pytest.fixture
def client(node: Served) -> AdminClient:
    return AdminClient(node.data_dir)


def raw(node: Served, sent: bytes) -> list[dict[str, object]]:
    """What the endpoint says to these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(node.endpoint.path))
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(sent)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return [json.loads(line) for line in answer.splitlines()]


def failure(client: AdminClient, verb: str, args: dict[str, object] | None = None) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        list(client.call(verb, args))
    return raised.value


def test_rows_come_one_by_one_and_then_the_end(client: AdminClient, node: Served):
    rows = list(client.call("count", {"to": 3}))
    assert rows == [{"number": n, "text": ""} for n in range(3)]
    assert raw(node, b'{"verb":"count","args":{"to":1}}\n') == [
        {"row": {"number": 0, "text": ""}},
        {"end": {"code": 0, "reason": ""}},
    ]


def test_many_calls_at_once(client: AdminClient):
    sizes: list[int] = []
    threads = [
        threading.Thread(target=lambda: sizes.append(len(list(client.call("count", {"to": 200})))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sizes == [200] * 8


def test_megabytes_of_rows_arrive_whole(client: AdminClient):
    rows = list(client.call("count", {"to": 40, "size": 100_000}))
    assert [len(row["text"]) for row in rows if isinstance(row, dict)] == [100_000] * 40


def test_integers_of_any_size_stay_exact(tmp_path: Path):
    from collections.abc import AsyncGenerator

    from msgspec import Raw

    from actors.admin import Caller, Verb
    from tests.admin.served import Nothing

    async def big(args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        yield {"n": Raw(b"123456789012345678901234567890"), "f": Raw(b"1.10")}

    with served(tmp_path / "data", {"big": Verb(Nothing, big)}) as node:
        client = AdminClient(node.data_dir)
        assert list(client.call("big")) == [{"n": 123456789012345678901234567890, "f": 1.1}]
        assert list(client.call_raw("big")) == [b'{"n":123456789012345678901234567890,"f":1.10}']


def test_an_unknown_verb_is_refused_with_the_known_ones(client: AdminClient):
    failed = failure(client, "reboot").failure
    assert (failed.code, failed.exit) == ("unknown_verb", 3)
    assert "break, count, explained, follow, refuse, slow" in failed.message


@pytest.mark.parametrize("args", [{}, {"to": "many"}, {"to": 1, "other": 2}])
def test_arguments_that_do_not_fit_are_refused(client: AdminClient, args: dict[str, object]):
    failed = failure(client, "count", args).failure
    assert (failed.code, failed.exit) == ("bad_args", 2)


@pytest.mark.parametrize(
    "sent",
    [
        b"\n",
        b"GET / HTTP/1.1\n",
        b"[]\n",
        b'{"verb":1}\n',
        b'{"verb":"count","extra":1}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_no_request_gets_one_error(node: Served, sent: bytes):
    (answer,) = raw(node, sent)
    assert isinstance(error := answer["error"], dict)
    assert (error["code"], error["exit"]) == ("bad_request", 2)


def test_deep_arguments_are_refused(node: Served):
    (answer,) = raw(node, b'{"verb":"count","args":' + b"[" * 100_000 + b"}\n")
    assert "error" in answer


def test_a_request_over_the_bound_is_refused_by_both_sides(node: Served, client: AdminClient):
    with pytest.raises(ValueError, match="a node takes"):
        list(client.call("count", {"to": 1, "text": "x" * MAX_REQUEST_BYTES}))
    answer = raw(node, b'{"verb":"' + b"x" * (MAX_REQUEST_BYTES + 100_000))
    assert all("error" in line for line in answer)
    assert list(client.call("count", {"to": 1}))


def test_a_verb_that_refuses_says_so_after_its_rows(client: AdminClient):
    rows = []
    with pytest.raises(CallFailed) as raised:
        rows += client.call("refuse")
    assert raised.value.failure.code == "no_mailbox"
    assert raised.value.failure.exit == 3
    assert str(raised.value) == "there is no seat of this handle"


def test_an_error_that_nobody_explains_is_internal_and_the_endpoint_goes_on(client: AdminClient):
    assert failure(client, "break").failure.code == "internal"
    assert failure(client, "explained").failure.code == "peer"
    assert len(list(client.call("count", {"to": 1}))) == 1


def test_arguments_are_never_logged(client: AdminClient, capsys: pytest.CaptureFixture[str]):
    failure(client, "count", {"to": "a very secret thing"})
    failure(client, "break", {})
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err
    assert "cheese" not in printed.out + printed.err


def test_a_caller_that_vanishes_closes_the_generator(client: AdminClient, verbs: Verbs):
    rows = client.call("follow")
    assert next(rows) == {"type": "first"}
    assert not verbs.closed.is_set()
    rows.close()  # type: ignore[attr-defined]
    assert verbs.closed.wait(10)


def test_a_caller_that_does_not_read_is_not_sent_ahead(node: Served, verbs: Verbs):
    """The generator is asked for a row when the last one could be written."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(node.endpoint.path))
        connection.sendall(b'{"verb":"count","args":{"to":1000,"size":100000}}\n')
        connection.recv(1)
        assert len(list(AdminClient(node.data_dir).call("count", {"to": 5}))) == 5
    assert verbs.sent < 500


def test_the_call_ends_when_the_reader_of_the_output_has_gone(client: AdminClient, verbs: Verbs):
    """Also while nothing comes that could be written to it."""
    reader, writer = os.pipe()
    rows = client.call_raw("follow", endless=True, output=writer)
    assert next(rows) == b'{"type":"first"}'
    os.close(reader)
    with pytest.raises(ReaderGone):
        next(rows)
    os.close(writer)
    assert verbs.closed.wait(10)


def test_without_a_node_the_client_says_so(tmp_path: Path):
    with pytest.raises(NotRunning) as raised:
        list(AdminClient(tmp_path / "nowhere").call("count"))
    assert raised.value.data_dir == tmp_path / "nowhere"


def test_a_node_that_dies_in_its_answer_is_no_end(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "crewlet.sock"))
        listener.listen()

        def die() -> None:
            connection, _ = listener.accept()
            connection.recv(1000)
            connection.sendall(b'{"row":{"n":1}}\n{"row":')
            connection.close()

        thread = threading.Thread(target=die)
        thread.start()
        rows = AdminClient(tmp_path).call("count")
        assert next(rows) == {"n": 1}
        with pytest.raises(NoAnswer):
            next(rows)
        thread.join(5)
