"""Which code this is, for whoever wants to see the same thing again."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from crewlet.version import __version__


@functools.cache
def commit() -> str:
    """Of the checkout that this package runs from, `-dirty` where files of it were changed; the
    version where it was installed, be it into a folder of somebody else's checkout."""
    root = Path(__file__).parents[1]
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or not root.samefile(top):
        return __version__
    return _git(root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*") or (
        __version__
    )


def _git(root: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=5.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
