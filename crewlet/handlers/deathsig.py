"""A child that dies with this process, even if this process is killed with -9.

Linux only; elsewhere a killed node leaves its commands to end by themselves.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1


def _load_prctl() -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    try:
        prctl: Callable[..., Any] = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
    return prctl


# Loaded once, here: between fork and exec nothing may import, allocate much or take a lock,
# because the other threads of the parent do not exist there.
_prctl: Final = _load_prctl()


def dies_with_parent() -> Callable[[], None] | None:
    """What the child calls before exec (`preexec_fn`), None where the system has no such thing."""
    return dies_with(os.getpid())


def dies_with(parent: int) -> Callable[[], None] | None:
    """The same, for a child that runs already and calls it by itself."""
    if _prctl is None:
        return None
    prctl = _prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died in between: there will be no signal
            os._exit(1)

    return before_exec
