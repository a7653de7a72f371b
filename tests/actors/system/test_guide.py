"""The guide's first example runs, and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_first_example_runs():
    text = (ROOT / "docs" / "guide" / "actors.md").read_text()
    (code, *_) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("Found(size=5)\n", "")
