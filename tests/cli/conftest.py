"""A node that answers with what a test says, and the command line as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import Struct

from actors.admin import Caller, Refused, Verb
from actors.admin.verbs import AnyVerb
from tests.admin.served import Served, served
from tests.cli.operated import Running
from tests.cli.operated import operated as running_node

COMMAND = [sys.executable, "-c", "from crewlet.cli.entry import main; main()"]

HANDLE = "h" * 63
REASON = ("the handler raised\n\x1b[31mred\x1b[0m \u202eesrever " * 60)[:2000]


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class Send(Struct, forbid_unknown_fields=True):
    handle: str
    text: str
    sender: str = "you"


class Limit(Struct, forbid_unknown_fields=True):
    limit: int


class One(Struct, forbid_unknown_fields=True):
    id: str


class Ids(Struct, forbid_unknown_fields=True):
    ids: list[str]
    dry_run: bool = False


class Events(Struct, forbid_unknown_fields=True):
    follow: bool
    last: int
    type: str


def seat(handle: str, name: str) -> dict[str, object]:
    return {
        "handle": handle,
        "name": name,
        "kind": "agent",
        "unit": "Studio",
        "contact": {"github_login": "octo", "slack_user_id": ""},
        "state": "idle",
        "owner": "n1",
        "waiting": 3,
        "in_flight": 0,
        "turns": 7,
        "last_turn": None,
    }


def letter(number: int) -> dict[str, object]:
    return {
        "id": str(number),
        "handle": "dev",
        "topic": "topic-of-dev",
        "group": "agent-dev",
        "reason": REASON,
        "deliveries": 25,
        "at": "2030-01-01T00:00:00Z",
        "event_id": f"event-{number}",
        "type": "task_assigned",
        "size": 120,
    }


def event(number: int, size: int = 0) -> dict[str, object]:
    return {
        "id": f"00000000-0000-4000-8000-{number:012}",
        "type": "agent_turn_started",
        "timestamp": "2030-01-01T00:00:00.000001Z",
        "source": "dev",
        "text": "x" * size,
        "big": 2**80,
    }


@dataclass
class FakeNode:
    """What the node has, and what it was asked."""

    seats: list[dict[str, object]] = field(
        default_factory=lambda: [seat("dev", "Developer"), seat(HANDLE, "开发者")]
    )
    letters: dict[str, dict[str, object]] = field(
        default_factory=lambda: {str(n): letter(n) for n in (1, 2, 3)}
    )
    events: list[dict[str, object]] = field(default_factory=lambda: [event(n) for n in range(3)])
    asked: list[object] = field(default_factory=list)
    replayed: set[str] = field(default_factory=set)
    served: Served | None = None

    async def seats_(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        for row in self.seats:
            yield row

    async def send(self, args: Send, caller: Caller) -> AsyncGenerator[object, None]:
        self.asked.append(args)
        if args.handle not in [row["handle"] for row in self.seats]:
            raise Refused("unknown_seat", f"there is no seat called {args.handle}", exit=2)
        yield {"event_id": "e-1", "position": 12}

    async def list(self, args: Limit, caller: Caller) -> AsyncGenerator[object, None]:
        for row in [*self.letters.values()][: args.limit]:
            yield row

    async def show(self, args: One, caller: Caller) -> AsyncGenerator[object, None]:
        if args.id not in self.letters:
            raise Refused("no_letter", f"there is no dead letter {args.id}")
        yield {**self.letters[args.id], "event": event(1)}

    async def replay(self, args: Ids, caller: Caller) -> AsyncGenerator[object, None]:
        self.asked.append(args)
        for id in args.ids:
            fresh = id in self.letters and id not in self.replayed
            if not args.dry_run:
                self.replayed.add(id)
            yield {
                "id": id,
                "event_id": f"event-{id}",
                "message_id": f"m-{id}",
                "replayed": fresh and not args.dry_run,
                "note": "" if fresh else "was replayed before",
            }

    async def drop(self, args: Ids, caller: Caller) -> AsyncGenerator[object, None]:
        self.asked.append(args)
        for id in args.ids:
            yield {"id": id, "dropped": self.letters.pop(id, None) is not None}

    async def events_(self, args: Events, caller: Caller) -> AsyncGenerator[object, None]:
        self.asked.append(args)
        for row in self.events:
            yield row
        if args.follow:
            import asyncio

            await asyncio.Event().wait()

    async def status(self, args: Nothing, caller: Caller) -> AsyncGenerator[object, None]:
        yield {"node": "n1", "company": "Octo", "draining": False}

    def verbs(self) -> Mapping[str, AnyVerb]:
        return {
            "seats": Verb(Nothing, self.seats_),
            "send": Verb(Send, self.send),
            "dlq.list": Verb(Limit, self.list),
            "dlq.show": Verb(One, self.show),
            "dlq.replay": Verb(Ids, self.replay),
            "dlq.drop": Verb(Ids, self.drop),
            "events": Verb(Events, self.events_, follows=True),
            "status": Verb(Nothing, self.status),
            "drain": Verb(Nothing, self.status),
        }


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Short: a socket's path has to fit."""
    with tempfile.TemporaryDirectory(prefix="cr-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    fake = FakeNode()
    with served(tmp_path / "data", fake.verbs()) as running:
        fake.served = running
        yield fake


@dataclass(frozen=True)
class Shell:
    """Runs command lines of crewlet for one data folder."""

    folder: Path

    def environment(self, **changes: str | None) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
        kept |= {"CREWLET_DATA": str(self.folder / "data")}
        for key, value in changes.items():
            kept.pop(key, None)
            if value is not None:
                kept[key] = value
        return kept

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=env or self.environment(),
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            preexec_fn=before,
        )

    def script(
        self, text: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """A line of bash in which `crewlet` is the command."""
        head = f"""crewlet() {{ {COMMAND[0]} -c "{COMMAND[2]}" "$@"; }}\n"""
        return subprocess.run(
            ["bash", "-c", head + text],
            cwd=self.folder,
            env=env or self.environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[Running]:
    """A whole node of its own, on the folder of `shell`."""
    with running_node(tmp_path / "data") as running:
        yield running
