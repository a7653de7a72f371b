"""Run Thespian's own tests, from its source distribution, on our base.

    python tests/thespian/run.py [--version 4.0.1] [pytest arguments]

Exit 0 when at least MINIMUM passed and none that applies failed, else 1. The last lines are
the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MINIMUM = 281
NAME = "thespian"
VERSION = "4.0.1"
WORKERS = "8"  # most of these tests sleep: more than the cores are of use


def source(version: str, cache: Path) -> Path:
    """The unpacked source distribution; downloaded once into `cache`."""
    unpacked = cache / f"{NAME}-{version}"
    if not unpacked.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--no-binary", ":all:", "--dest", str(cache), f"{NAME}=={version}"],
            check=True,
        )
        with tarfile.open(cache / f"{NAME}-{version}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return unpacked


def run_tests(unpacked: Path, extra: list[str]) -> dict[str, int]:
    """Run them in a process of their own, with that source ahead of any installed one."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join([str(unpacked), str(HERE), str(ROOT)])
        env = {**os.environ, "PYTHONPATH": path, "THESPIAN_COUNTS": scratch}
        env.pop("PYTHONUNBUFFERED", None)  # their abort test counts on a buffered child
        subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "our_base", "-p", "no:cacheprovider"]
            + [
                "-q",
                "--tb=short",
                "--timeout=60",
                "-n",
                WORKERS,
                "--dist=worksteal",
                "--rootdir",
                str(unpacked),
            ]
            + ["-c", str(HERE / "pytest.ini"), *extra, str(unpacked / NAME / "test")],
            cwd=scratch,
            env=env,
            check=False,
        )
        counts: dict[str, int] = {}
        for name in ("ended.json", "collected.json"):
            left = Path(scratch, name)
            if not left.is_file():
                sys.exit("thespian: the tests did not run to their end")
            counts |= json.loads(left.read_text())
        return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--cache", type=Path, default=ROOT / ".tox" / "thespian-sdist")
    options, extra = parser.parse_known_args()
    counts = run_tests(source(options.version, options.cache), extra)
    for key, count in counts.items():
        print(f"{key}: {count}")
    good = counts["passed"] >= MINIMUM and not counts["failed"] and not counts["error"]
    print(f"thespian {options.version}: {'ok' if good else 'FAILED'} (minimum {MINIMUM} passed)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
