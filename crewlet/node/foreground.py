"""`crewlet up`: a node in the foreground, from the first signal handler to the exit code.

The first stop signal drains. The second leaves at once: whatever is in flight is reclaimed by
the next start, since nothing was acknowledged that was not finished.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from actors import failpoints
from actors.ports import BrokerError
from crewlet import logs
from crewlet.company import Company, NodeSettings, load_company, load_node_settings
from crewlet.demo import webhooks
from crewlet.errors import CrewletError, NodeRefused
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.node.children import end_children, reap_orphans
from crewlet.node.garbage import collected_seldom
from crewlet.node.node import Node
from crewlet.sources import vendors

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3

SECRET: Final = "CREWLET_GITHUB_SECRET"  # noqa: S105 - the variable's name
DEMO: Final = Path(__file__).parent.parent / "demo" / "company.yaml"

USUAL: Final = Path(".crewlet")
"""Where commands look for a node unless they are told."""

REFUSAL_S: Final = 10.0
"""How long a start that cannot succeed may take to say why."""

LEFT_OVER_S: Final = 1.0
"""How long tasks that outlived the node may take to notice; then the process leaves anyway."""

log = structlog.get_logger(__name__)


def run_foreground(
    company: Path | None,
    node_file: Path | None,
    data: Path,
    port: int | None,
    quiet: bool,
    *,
    apply: bool = False,
) -> int:
    """Serve until told to stop; the exit code (0 stopped as asked, 1 failed, 2 a file is
    wrong, 3 refused). Does not return where a handler that cannot be stopped still runs:
    then it flushes and leaves the process."""
    try:
        if os.environ.get("CREWLET_MUTANT"):
            raise NodeRefused("CREWLET_MUTANT is set: planted faults are for test runs; unset it")
        _arm_failpoints()
        settings = _settings(node_file, port)
        logs.configure(debug=settings.debug)
        loaded, secret = _company(company)
    except CrewletError as error:
        return _refused(error)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        folder = company.parent if company else None
        node = Node(loaded, settings=settings, data=data, folder=folder, watchdog=True, apply=apply)
        code = loop.run_until_complete(_served(node, company, data, quiet, secret))
    except (CrewletError, BrokerError) as error:
        code = _refused(error)
    _leave(loop, code)
    return code


def _refused(error: Exception) -> int:
    print(f"crewlet: {error}", file=sys.stderr)
    if not isinstance(error, CrewletError):
        return FAILED
    return {"config": USAGE, "node_refused": REFUSED, "broker_refused": REFUSED}.get(
        error.code, FAILED
    )


def _arm_failpoints() -> None:
    """Only where a test says that this is one."""
    text = os.environ.get(failpoints.VARIABLE, "")
    if text and not os.environ.get(failpoints.ALLOWED):
        raise NodeRefused(f"{failpoints.VARIABLE} is set: failpoints are for test runs; unset it")
    try:
        failpoints.arm(text)
    except ValueError as error:
        raise NodeRefused(f"{failpoints.VARIABLE}: {error}") from None


def _settings(path: Path | None, port: int | None) -> NodeSettings:
    settings = load_node_settings(path)
    if port is None:
        return settings
    api = msgspec.structs.replace(settings.api, port=port)
    return msgspec.structs.replace(settings, api=api)


def _company(path: Path | None) -> tuple[Company, str]:
    """The company, and the secret that was made up for the demo (empty where none was)."""
    if path is not None:
        return load_company(path), ""
    made = "" if os.environ.get(SECRET) else secrets.token_hex(16)
    env = {**os.environ, SECRET: made} if made else dict(os.environ)
    return load_company(DEMO, env=env), made


async def _served(node: Node, path: Path | None, data: Path, quiet: bool, secret: str) -> int:
    async with collected_seldom():
        return await _serve(node, path, data, quiet, secret)


async def _serve(node: Node, path: Path | None, data: Path, quiet: bool, secret: str) -> int:
    stop = _Stop(node)
    stop.install()
    starting = asyncio.ensure_future(node.start())
    asked = asyncio.ensure_future(node.stopping.wait())
    await asyncio.wait((starting, asked), return_when=asyncio.FIRST_COMPLETED)
    if node.lost:  # its id is another's: the start itself says so
        await asyncio.wait((starting,), timeout=REFUSAL_S)
    if not starting.done():  # told to stop before it was up: take down what there is
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return REFUSED if node.lost else OK
    starting.result()
    reap_orphans()
    say = _Say(quiet)
    if node.reconcile.notice:
        say.complain(node.reconcile.notice)
    say.banner(node, data, secret)
    node.queue.add_listener(say.event)
    demo = None
    if path is None and not quiet and (key := node.edge.secret("github")):
        demo = asyncio.ensure_future(webhooks.post_all(node.url, key))
    await asked
    if demo is not None:
        demo.cancel()
    return await _stop(node, say)


async def _stop(node: Node, say: _Say) -> int:
    bound_s = node.settings.drain_timeout_s
    running = len(node.turns.all_running())
    say.line(f"draining: {running} turn(s) running, at most {bound_s:.0f} s; again to stop at once")
    drained = await node.drain()
    for seat, key in drained.cut:
        say.complain(f"{seat}: the turn of {key} did not end in time; its mail was handed back")
    for name in drained.stuck:
        say.complain(
            f"{name}: its mailboxes did not answer; its mail is reclaimed at the next start"
        )
    await node.stop()
    code = OK if not node.lost else REFUSED
    if node.disowned:
        # Closing a coroutine that swallows everything would never come back.
        for turn in node.disowned:
            say.complain(f"{turn}: its handler did not stop; the process leaves without it")
        _exit_now(code)
    say.line("stopped")
    return code


class _Stop:
    """Signals: the first asks, the second insists. A node that was told by `crewlet drain` is asked
    once more by its service manager, which insists on nothing yet."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._asked = False

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        if self._asked:
            end_children()
            _exit_now(128 + number)
        if self._node.stopping.is_set():
            _Say(quiet=False).complain("it stops already; again to stop at once")
        self._asked = True
        self._node.stopping.set()


class _Say:
    """What a person in front of the terminal reads; nothing at all where they want it quiet.
    A terminal that went away stops nobody's work."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def banner(self, node: Node, data: Path, secret: str) -> None:
        company = node.company
        agents, everybody = len(company.agents()), len(company.seats)
        self.line(f"{company.name}: {everybody} seats, {agents} of them agents")
        for seat in company.seats:
            self.line(f"  {seat.handle:<12} {seat.kind:<6} {seat.name}")
        for path in _hooks(company) if node.url else ():
            self.line(f"web edge     {node.url}/webhooks/{path}")
        self.line(f"broker       {node.settings.stream.type}, data in {data.resolve()}")
        if secret:
            self.line(f"secret       {secret}  (made for this run; set {SECRET} to keep one)")
        if data != USUAL:
            self.line(f"commands     export CREWLET_DATA={shlex.quote(str(data.resolve()))}")
        self.line("try          crewlet seats | crewlet send HANDLE TEXT | crewlet shell")
        self.line("stop         Ctrl-C")

    def event(self, topic: str, event: Event) -> None:
        if event.type != types.AGENT_TURN_COMPLETED:
            return
        seat, outcome = event.value("agent_role", str, ""), event.value("outcome", str, "")
        said = event.value("answer", str, "") or event.value("reason", str, "")
        short = " ".join(said.split())[:160]
        self.line(f"{event.timestamp:%H:%M:%S}  {seat:<12} {outcome:<5}  {short}")

    def line(self, text: str) -> None:
        if not self._quiet:
            self._print(text, sys.stdout)

    def complain(self, text: str) -> None:
        self._print(f"crewlet: {text}", sys.stderr)

    def _print(self, text: str, stream: object) -> None:
        try:
            print(_printable(text, stream), file=stream, flush=True)  # type: ignore[call-overload]
        except (OSError, ValueError):
            self._quiet = True


def _hooks(company: Company) -> list[str]:
    """Where deliveries from outside are taken, for each source that the company listens to."""
    known = [vendor for vendor in vendors() if company.integrations.of(vendor) is not None]
    return [*known, *(f"generic/{name}" for name in company.integrations.generic)] or ["VENDOR"]


def _printable(text: str, stream: object) -> str:
    """Without what a terminal would obey, and without what the stream cannot encode."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return plain.encode(encoding, "backslashreplace").decode(encoding)


def _leave(loop: asyncio.AbstractEventLoop, code: int) -> None:
    """Close the loop. Tasks that will not be cancelled are named, and left behind."""
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        loop.run_until_complete(asyncio.wait(pending, timeout=LEFT_OVER_S))
        if stuck := [task.get_name() for task in pending if not task.done()]:
            log.error("tasks_left_behind", tasks=stuck)
            _exit_now(code)
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()


def _exit_now(code: int) -> None:
    """The crudest exit: no thread, no handler and no finalizer is waited for."""
    flush: tuple[Callable[[], None], ...] = (sys.stdout.flush, sys.stderr.flush)
    for each in flush:
        try:
            each()
        except (OSError, ValueError):
            continue
    os._exit(code)
