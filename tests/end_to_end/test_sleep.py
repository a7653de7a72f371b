"""A real process that is stopped over the time of a schedule, as a laptop that is closed."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.end_to_end.harness import COMPANY, Company

ASLEEP = timedelta(seconds=95)
"""Over two minutes' ends, and for longer than the leases last."""

LEFT = 75
"""The exit code of a node whose watchdog saw that it stood still."""


def scheduled(at: datetime) -> str:
    """Company T with `dev` once a day at this minute, and `ops` each minute."""
    daily = f"cron: '{at.minute} {at.hour} * * *'"
    text = COMPANY.replace(
        "handle: dev,", f"handle: dev, schedules: [{{name: daily, {daily}, text: look}}],"
    )
    return text.replace(
        "handle: ops,",
        "handle: ops, schedules: [{name: minutely, cron: '* * * * *', text: look}],",
    )


def wait_until(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))


@pytest.mark.field("C41")
@pytest.mark.long  # it sleeps for minutes
@pytest.mark.timeout(400)
def test_a_stopped_node_makes_up_for_what_it_slept_through(tmp_path: Path) -> None:
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    at = minute + timedelta(minutes=1 if datetime.now(UTC).second < 20 else 2)
    company = Company(tmp_path, scheduled(at))
    node = company.start()
    try:
        wait_until(at - timedelta(seconds=12))
        node.process.send_signal(signal.SIGSTOP)
        wait_until(at - timedelta(seconds=12) + ASLEEP)
        node.process.send_signal(signal.SIGCONT)
        time.sleep(5)
        if node.process.poll() is not None:
            assert node.process.returncode == LEFT
            node = company.start()
        time.sleep(75)  # a whole minute more, and a look
        found = node.events("scheduled_task_fired")
        daily = [row for row in found if row["schedule"] == "daily"]
        assert [row["outcome"] for row in daily] == ["fired"] and daily[0]["late_s"] > 60
        minutely = [row for row in found if row["schedule"] == "minutely"]
        asleep = [(at + timedelta(minutes=n)).strftime("%H:%M") for n in (0, 1)]
        caught = [row for row in minutely if row["outcome"] == "fired" and row["late_s"] > 15]
        assert len(caught) <= 1, "one for the gap"
        labels = [row["label"][11:16] for row in minutely if row["outcome"] == "fired"]
        assert len(labels) == len(set(labels))
        skipped = [row for row in minutely if row["outcome"] == "skipped_catchup"]
        said = set(labels) | {row[key][11:16] for row in skipped for key in ("first", "label")}
        assert set(asleep) <= said
        assert len(company.lines("end", "dev")) == 1
    finally:
        node.end()
