"""A kill -9 in the middle of what is done once: a revision that is applied, a fire that is claimed,
a run that is opened. Two nodes; the first that comes to the place dies there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.admin import CallFailed, NoAnswer, NotRunning
from tests.chaos.pair import WITHIN_S, Pair
from tests.end_to_end.commands import nats_server
from tests.end_to_end.harness import until

COMPANY = """
name: Company T
handler: {python: "edge_work:work", timeout_s: 60}
roles:
  - {name: Dev, handle: dev}
  - {name: Qa, handle: qa}
"""

LATER = COMPANY + "  - {name: Ops, handle: ops}\n"

SCHEDULED = COMPANY.replace(
    "handle: dev}", "handle: dev, schedules: [{name: each, cron: '* * * * *', text: look}]}"
)

WORK = """
from crewlet.turn import Suspend

async def work(turn):
    return Suspend(turn.text.split()[1]) if turn.text.startswith("suspend") else "did " + turn.text
"""


@contextmanager
def pair(folder: Path, text: str, failpoint: str) -> Iterator[Pair]:
    with nats_server(folder / "server") as url:
        both = Pair(folder, url, text, "edge_work", WORK)
        try:
            both.boot(failpoint)
            yield both
        finally:
            both.end()


# -- a revision -----------------------------------------------------------------------------


def revisions(both: Pair) -> list[int]:
    return sorted(row["revision"] for row in both.call("revision.ls"))


def works_by(both: Pair, number: int) -> bool:
    rows = [row for row in both.call("node.ls") if row["state"] == "serving"]
    return [row["revision"] for row in rows] == [number, number]


def applied(both: Pair) -> list[dict[str, Any]]:
    """By way of whichever takes it; one may die of this very call."""
    return both.call("apply", text=LATER, name="later.yaml")


@pytest.mark.certifies(21, 123)
@pytest.mark.parametrize(
    ("place", "stands"),
    [
        ("mid_config_apply", [1]),
        ("after_config_activated", [1, 2]),
        pytest.param("mid_config_take", [1, 2], marks=pytest.mark.long),
    ],
)
def test_a_kill_while_a_revision_is_applied_leaves_one_that_all_work_by(
    place: str, stands: list[int], tmp_path: Path
) -> None:
    with pair(tmp_path, COMPANY, f"{place}:1=kill") as both:
        with contextlib.suppress(NotRunning, NoAnswer, CallFailed):
            both.nodes[0].call("apply", text=LATER, name="later.yaml")
        until(lambda: both.dead, WITHIN_S, why=f"a node dies {place}")
        # The other one may die of taking what stands, now or as it is asked.
        assert revisions(both) in (stands, [])
        both.revive()
        until(lambda: _again(both, stands[-1]), WITHIN_S, why="both work by what stands")
        until(lambda: applied(both), WITHIN_S, why="somebody takes it once more")
        until(lambda: _again(both, 2), WITHIN_S, why="both work by the second")
        assert revisions(both) == [1, 2], "applied once, though it was said twice"
        both.call("send", handle="ops", text="hello")
        until(lambda: both.worked("ops"), WITHIN_S, why="the new seat works its mail")


def _again(both: Pair, number: int) -> bool:
    both.revive()
    return works_by(both, number)


# -- a fire ---------------------------------------------------------------------------------


@pytest.mark.certifies(122)
@pytest.mark.long  # the minute has to end
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["after_fire_claimed", "after_fire_published"])
def test_a_kill_between_a_claim_and_its_record_fires_once(place: str, tmp_path: Path) -> None:
    with pair(tmp_path, SCHEDULED, f"{place}:1=kill") as both:
        until(lambda: both.dead, 120.0, why=f"a node dies {place}")
        both.revive()
        until(lambda: _fired(both), 120.0, why="what was claimed is fired")
        time.sleep(12.0)  # a look more, for what should not come
        labels = [row["label"] for row in _fired(both)]
        assert len(labels) == len(set(labels)), "once each"
        tasks = [row for row in both.events("agent_turn_completed") if row["outcome"] == "ack"]
        triggers = [trigger for row in tasks for trigger in row["triggers"]]
        assert len(triggers) == len(set(triggers)) >= 1


def _fired(both: Pair) -> list[dict[str, Any]]:
    both.revive()
    return [row for row in both.events("scheduled_task_fired") if row["outcome"] == "fired"]


# -- a run ----------------------------------------------------------------------------------


@pytest.mark.certifies(137)
def test_a_kill_once_a_run_is_open_begins_it_once(tmp_path: Path) -> None:
    with pair(tmp_path, COMPANY, "after_run_opened:1=kill") as both:
        with contextlib.suppress(NoAnswer, CallFailed):
            both.nodes[0].send("dev", "suspend r1")
        until(lambda: both.dead, WITHIN_S, why="a node dies with the row open")
        until(lambda: _runs(both), WITHIN_S, why="the run is there")
        (run,) = _runs(both)
        assert (run["handle"], run["run_id"]) == ("dev", "r1")
        until(lambda: _completed(both), WITHIN_S, why="its end is said")
        until(lambda: _skipped(both), WITHIN_S, why="its trigger is worked, and not begun anew")
        assert both.call("dlq.list") == []
        opened = [row for row in both.events("agent_turn_completed") if row["outcome"] != "ack"]
        assert len(opened) <= 1, "a node that died of it may not have said so"


def _runs(both: Pair) -> list[dict[str, Any]]:
    both.revive()
    return both.call("run.ls")


def _completed(both: Pair) -> list[dict[str, Any]]:
    return both.call("run.complete", handle="dev", run_id="r1", text="done")


def _skipped(both: Pair) -> list[dict[str, Any]]:
    return both.events("turn_trigger_skipped")
