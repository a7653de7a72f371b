"""The first code of the process: be stoppable and safe to write from, then load the rest.

Nothing heavy is imported here.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from crewlet.cli.early import obey_early


def main() -> NoReturn:
    """The console script `crewlet`."""
    obey_early()
    keep_descriptors()
    from crewlet.cli.app import run

    sys.exit(run(sys.argv[1:]))


def keep_descriptors() -> None:
    """Open 0, 1 and 2 on nothing where they are closed: else the first socket of ours takes
    such a number, and what is meant for a person goes to whoever is at its other end."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
