"""Two nodes of one company on one server, to be killed at one place and started again."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from actors.admin import CallFailed, NoAnswer, NotRunning
from tests.end_to_end.commands import node_file
from tests.end_to_end.harness import Company, Running, until

LEASE = "lease: {ttl_s: 4, renew_s: 1, margin_s: 0.5}\n"

WITHIN_S = 60.0


class Pair:
    """`boot` arms both; `revive` starts whoever died, unarmed."""

    def __init__(self, folder: Path, url: str, text: str, module: str, work: str) -> None:
        """`text` is the company's file, and `work` what stands in the `module` beside it."""
        files = (text, f"{module}.py", work)
        self.companies = [self._company(folder / name, *files) for name in ("first", "second")]
        self.nodes: list[Running] = []
        self._url = url

    def _company(self, folder: Path, text: str, name: str, work: str) -> Company:
        folder.mkdir()
        (folder / name).write_text(work)
        return Company(folder, text)

    def start(self, at: int, failpoint: str = "") -> Running:
        company = self.companies[at]
        text = f"stream: {{type: nats, url: '{self._url}'}}\nnode: {{id: n{at + 1}}}\n{LEASE}"
        env = {"CREWLET_TEST_BUILD": "1", "CREWLET_FAILPOINT": failpoint}
        return company.start(*node_file(company, text), env=env, wait=False)

    def boot(self, failpoint: str = "") -> None:
        self.nodes = [self.start(at, failpoint) for at in (0, 1)]
        for node in self.nodes:
            node.wait_until_up()
        until(self._shared, WITHIN_S, why="each node has a seat")

    def _shared(self) -> bool:
        owners = {row["handle"]: row["owner"] for row in self.nodes[0].call("seats")}
        return {owners["dev"], owners["qa"]} == {"n1", "n2"}

    def revive(self) -> None:
        """Start whoever is dead, unarmed."""
        for at, node in enumerate(self.nodes):
            if node.process.poll() is not None:
                self.nodes[at] = self.start(at)

    @property
    def dead(self) -> int:
        return sum(node.process.poll() is not None for node in self.nodes)

    def call(self, verb: str, **args: Any) -> list[dict[str, Any]]:
        """The answer of whichever node lives."""
        for node in self.nodes:
            with contextlib.suppress(NotRunning, NoAnswer, CallFailed):
                return node.call(verb, **args)
        return []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return self.call("events", last=5000, type=kind)

    def worked(self, seat: str) -> dict[str, str]:
        """Which turn worked each trigger. A node that is killed between the completion and its
        record leaves the word of whoever finds the trigger worked."""
        rows = [row for row in self.events("agent_turn_completed") if row["outcome"] == "ack"]
        done = [(row, trigger, row["turn_id"]) for row in rows for trigger in row["triggers"]]
        skips = self.events("turn_trigger_skipped")
        done += [(row, row["trigger_id"], row["worked_by"]) for row in skips]
        return {trigger: turn for row, trigger, turn in done if row["agent_role"] == seat}

    def end(self) -> None:
        for node in self.nodes:
            node.end()
