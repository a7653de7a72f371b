"""Run as a script between fork and exec: ties the broker's life to its parent's.

`launch.py PARENT_PID PROGRAM ARGUMENT...`. A `preexec_fn` would do the same inside a forked
copy of a threaded interpreter, where it may deadlock. Imports nothing of ours: it runs in an
isolated interpreter.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, program, *rest = sys.argv[1:]
    os.umask(0o077)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)  # it died before the line above: nobody would ever end this child
    os.execv(program, [program, *rest])  # noqa: S606


if __name__ == "__main__":
    main()
