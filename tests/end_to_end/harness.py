"""A real node in a real process: started, posted to, killed, and counted from outside.

Turns are counted in the recorder's file, never in the product's own numbers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors.admin import AdminClient, CallFailed, NoAnswer, NotRunning

SECRET = "only for tests"
UP_WITHIN_S = 30.0

COMPANY = """
name: Company T
integrations:
  github:
    secret: ${T_SECRET}
handler:
  command: [%(python)s, %(recorder)s, %(record)s]
  timeout_s: 60
units:
  - name: unit
    lead: boss
    roles:
      - {name: Boss, handle: boss, kind: human, contact: {github_login: octo-boss}}
      - {name: Dev, handle: dev, contact: {github_login: octo-dev}}
      - {name: Ops, handle: ops, contact: {github_login: OPS-Bot}}
      - {name: Qa, handle: qa, contact: {github_login: octo-qa}}
"""

RECORDER = """
import json, os, sys, time
turn = json.load(sys.stdin)
def write(kind):
    line = {"kind": kind, "seat": turn["seat"]["handle"], "turn": turn["turn_id"],
            "events": [e["id"] for e in turn["events"]], "attempt": turn["attempt"],
            "key": turn["conversation"]["partition_key"], "text": turn["events"][0]["body"],
            "at": time.monotonic(), "pid": os.getpid()}
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps(line) + "\\n")
write("start")
text = turn["events"][0]["body"]
if text.startswith("sleep "):
    time.sleep(float(text.split()[1]))
if text.startswith("fail"):
    sys.exit("told to fail")
write("end")
print("done: " + text[:40])
"""


def until(what: Callable[[], Any], within_s: float = 20.0, *, why: str = "") -> Any:
    """Poll until `what` is true; its value. The deadline is a failure, never a pass."""
    deadline = time.monotonic() + within_s
    while True:
        if value := what():
            return value
        assert time.monotonic() < deadline, f"not within {within_s} s: {why or what}"
        time.sleep(0.02)


class Company:
    """A company's files and data folder, and the recorder's file."""

    def __init__(self, folder: Path, text: str = COMPANY) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.record = folder / "turns.jsonl"
        self.file = folder / "company.yaml"
        self.log = folder / "node.log"
        recorder = folder / "recorder.py"
        recorder.write_text(RECORDER)
        places = {"python": sys.executable, "recorder": recorder, "record": self.record}
        self.file.write_text(text % {k: json.dumps(str(v)) for k, v in places.items()})

    def lines(self, kind: str = "end", seat: str = "") -> list[dict[str, Any]]:
        if not self.record.exists():
            return []
        rows = [json.loads(line) for line in self.record.read_text().splitlines()]
        return [r for r in rows if r["kind"] == kind and (not seat or r["seat"] == seat)]

    def start(self, *args: str, env: Mapping[str, str] | None = None, wait: bool = True) -> Running:
        command = [sys.executable, "-m", "crewlet", "up", str(self.file)]
        command += ["--data", str(self.data), "--port", "0", "--quiet", *args]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "T_SECRET": SECRET, **(env or {})},
                start_new_session=True,
            )
        node = Running(self, process)
        if wait:
            node.wait_until_up()
        return node

    @contextmanager
    def running(self, *args: str) -> Iterator[Running]:
        node = self.start(*args)
        try:
            yield node
        finally:
            node.end()


class Running:
    """One process of a company's node."""

    def __init__(self, company: Company, process: subprocess.Popen[bytes]) -> None:
        self.company = company
        self.process = process
        self.url = ""

    def wait_until_up(self) -> None:
        def status() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.company.log.read_text()[-4000:]
            return self.try_status()

        self.url = until(status, UP_WITHIN_S, why="the node answers")["url"]

    def try_status(self) -> dict[str, Any] | None:
        try:
            return self.call("status")[0]
        except (NotRunning, NoAnswer, CallFailed):
            return None

    def call(self, verb: str, **args: Any) -> list[dict[str, Any]]:
        return list(AdminClient(self.company.data).call(verb, args))  # type: ignore[arg-type]

    def send(self, seat: str, text: str) -> str:
        return str(self.call("send", handle=seat, text=text)[0]["event_id"])

    def post(
        self,
        event: str,
        payload: object,
        *,
        delivery: str = "",
        secret: str = SECRET,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        body = json.dumps(payload).encode() if body is None else body
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        sent = {
            "Content-Type": "application/json",
            **(headers or {}),
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        request = urllib.request.Request(f"{self.url}/webhooks/github", body, sent)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def events(self, kind: str = "*", last: int = 5000) -> list[dict[str, Any]]:
        return self.call("events", last=last, type=kind)

    def idle(self, within_s: float = 30.0) -> None:
        """Until no agent seat has mail waiting or in flight, and routing has none either."""

        def quiet() -> bool:
            seats = [row for row in self.call("seats") if row["kind"] == "agent"]
            return all(row["waiting"] == row["in_flight"] == 0 for row in seats)

        until(quiet, within_s, why="every inbox is empty")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self, number: int = signal.SIGTERM, within_s: float = 15.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(within_s)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


def issue(number: int = 1, **over: Any) -> dict[str, Any]:
    """A small `issues` payload of our own; `over` replaces keys at the top."""
    about = {
        "number": number,
        "title": f"issue {number}",
        "body": "text",
        "user": {"login": "visitor"},
        "assignees": [],
        "labels": [],
    }
    return {
        "action": "opened",
        "issue": about,
        "repository": {"full_name": "octo/site", "name": "site", "owner": {"login": "octo"}},
        "sender": {"login": "visitor"},
        **over,
    }


def comment(number: int, text: str, sender: str = "visitor", **over: Any) -> dict[str, Any]:
    """A small `issue_comment` payload of our own."""
    payload = issue(number, action="created", sender={"login": sender}, **over)
    payload["comment"] = {"id": len(text), "body": text, "user": {"login": sender}}
    return payload
