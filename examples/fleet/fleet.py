"""Three nodes of one company on this machine, their logs side by side; Ctrl-C stops them.

`python fleet.py [DATA]`: what they keep lies below DATA (.fleet unless told). The nodes are
stopped one after the other, so that each hands its seats over to those that are still there; a
second Ctrl-C ends them at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
NODES = ("node-1", "node-2", "node-3")
STOP_S = 45.0
"""Longer than a drain may take (drain_timeout_s, 30 s)."""


def secret_of(data: Path) -> str:
    """What the members prove themselves by: made once, and kept where only we may read it."""
    path = data / "cluster.secret"
    with contextlib.suppress(FileExistsError):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    return path.read_text().strip()


async def start(name: str, data: Path, env: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crewlet", "up", HERE / "company.yaml"),
        *("--node", HERE / f"{name}.yaml", "--data", data / name),
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # a Ctrl-C is ours to pass on
    )


async def show(name: str, node: asyncio.subprocess.Process) -> None:
    assert node.stdout is not None
    async for line in node.stdout:
        print(f"{name} | {line.decode(errors='replace').rstrip()}", flush=True)
    print(f"{name} | ended with {await node.wait()}", flush=True)


async def stop(nodes: dict[str, asyncio.subprocess.Process]) -> None:
    for name, node in nodes.items():
        if node.returncode is None:
            print(f"fleet  | stopping {name}", flush=True)
            node.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(node.wait(), STOP_S)
            except TimeoutError:
                node.kill()


def end(nodes: dict[str, asyncio.subprocess.Process]) -> None:
    for node in nodes.values():
        if node.returncode is None:
            node.kill()


async def main(data: Path) -> int:
    env = {**os.environ, "CREWLET_CLUSTER_SECRET": secret_of(data), "PYTHONUNBUFFERED": "1"}
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    nodes = {name: await start(name, data, env) for name in NODES}
    shown = [asyncio.create_task(show(name, node)) for name, node in nodes.items()]

    def on_signal() -> None:
        if asked.is_set():
            end(nodes)
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    over = asyncio.gather(*shown)
    asking = asyncio.create_task(asked.wait())
    await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
    await stop(nodes)
    await over
    return 0 if asked.is_set() else 1


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".fleet").absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sys.exit(asyncio.run(main(folder)))
