"""A delivery that comes again: to another node of the fleet, and when the broker remembers its id
no more. Two nodes on one server; turns are counted in the recorder's file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.end_to_end.commands import nats_server, node_file
from tests.end_to_end.harness import Company, Running, comment, until

WINDOW_S = 1.0
MAIL = ("CREWLET_NOTIFICATIONS", "CREWLET_AGENT")


@contextmanager
def _two_nodes(folder: Path, url: str) -> Iterator[tuple[Running, Running]]:
    """Of one company, whose turns are recorded in one file."""
    started: list[Running] = []
    first = _company(folder / "first")
    second = _company(folder / "second")
    second.file = first.file
    try:
        for name, company in (("first", first), ("second", second)):
            text = f"stream: {{type: nats, url: '{url}'}}\nnode: {{id: {name}}}\n"
            started.append(company.start(*node_file(company, text)))
        yield started[0], started[1]
    finally:
        for node in started:
            node.end()


def _company(folder: Path) -> Company:
    folder.mkdir()
    return Company(folder)


async def _remember_ids_for(url: str, seconds: float) -> None:
    """Narrow the window of the streams that mail goes by. A server that remembers some already
    looks at the window when the old one has passed."""
    client = await nats.connect(url)
    try:
        stream = client.jetstream()
        for name in MAIL:
            config = (await stream.stream_info(name)).config
            config.duplicate_window = seconds
            await stream.update_stream(config)
    finally:
        await client.close()


async def _purge_claims(url: str) -> None:
    """As five minutes do. The first memory of a delivery is the broker's, the second these."""
    client = await nats.connect(url)
    try:
        await client.jetstream().purge_stream("KV_crewlet_claims")
    finally:
        await client.close()


def _turns(node: Running, seat: str) -> int:
    return len(node.company.lines("start", seat))


@pytest.mark.certifies(130)
@pytest.mark.field("C10")
def test_a_redelivery_to_another_node_wakes_a_seat_once(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as url, _two_nodes(tmp_path, url) as (node, other):
        payload = comment(1, "@octo-dev once")
        assert node.post("issue_comment", payload, delivery="G1") == 202
        until(lambda: node.company.lines("end", "dev"), why="worked")
        assert other.post("issue_comment", payload, delivery="G1") == 202
        said = until(lambda: other.events("notification_skipped"), why="recorded where it came")
        assert "G1" in said[0]["detail"]
        # G3: two hooks of one event, to two nodes at the same moment.
        both = comment(3, "@octo-qa once")
        with ThreadPoolExecutor(2) as hooks:
            answers = [
                hooks.submit(
                    at.post, "issue_comment", both, delivery="G3", headers={"X-GitHub-Hook-ID": h}
                )
                for at, h in ((node, "1"), (other, "2"))
            ]
        assert [answer.result() for answer in answers] == [202, 202]
        until(lambda: node.company.lines("end", "qa"), why="worked")
        until(lambda: len(node.events("notification_skipped")) == 2, why="one of them is a double")
        node.idle()
        assert (_turns(node, "dev"), _turns(node, "qa")) == (1, 1)


@pytest.mark.certifies(130)
@pytest.mark.field("C10")
def test_the_ledger_knows_a_delivery_whose_id_the_broker_has_forgotten(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as url, _two_nodes(tmp_path, url) as (node, other):
        asyncio.run(_remember_ids_for(url, WINDOW_S))
        payload = comment(1, "@octo-dev once")
        assert node.post("issue_comment", payload, delivery="G1") == 202
        until(lambda: node.company.lines("end", "dev"), why="worked")
        node.idle()

        def again() -> list[dict[str, Any]]:
            asyncio.run(_purge_claims(url))
            assert other.post("issue_comment", payload, delivery="G1") == 202
            return other.events("turn_trigger_skipped")

        said = until(again, 30, why="the broker takes it again, and it is known as worked")
        turn = node.company.lines("end", "dev")[0]["turn"]
        assert (said[0]["agent_role"], said[0]["worked_by"]) == ("dev", turn)
        node.idle()
        assert _turns(node, "dev") == 1
