"""A real `crewlet up` whose loop stands still for longer than its leases last."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.watchdog import STALLED
from tests.end_to_end.commands import node_file
from tests.end_to_end.harness import Company, until

COMPANY = """
name: Company T
handler: {python: "stalling:work", timeout_s: 60}
roles:
  - {name: Dev, handle: dev}
"""

WORK = """
import time

async def work(turn):
    if turn.attempt == 1:
        time.sleep(60)  # in the loop, where nothing may wait
    return "done"
"""

LEASE = "lease: {ttl_s: 4, renew_s: 1, margin_s: 0.5}\n"


@pytest.mark.certifies(272)
def test_a_handler_that_blocks_the_loop_ends_its_node_and_its_mail_is_worked(
    tmp_path: Path,
) -> None:
    (tmp_path / "stalling.py").write_text(WORK)
    company = Company(tmp_path, COMPANY)
    lease = node_file(company, LEASE)
    node = company.start(*lease)
    try:
        node.send("dev", "hello")
        until(lambda: node.process.poll() is not None, 30.0, why="its watchdog ends it")
        assert node.process.returncode == STALLED == 75
        assert "stood still" in company.log.read_text()
        node = company.start(*lease)
        rows = until(lambda: node.events("agent_turn_completed"), 30.0, why="it is worked")
        assert [row["outcome"] for row in rows] == ["ack"]
    finally:
        node.end()
