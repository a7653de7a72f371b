"""docs/guide/embedding.md: its program runs as it stands there, and a node takes what it says."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crewlet.node import Node
from tests.end_to_end.test_examples import ROOT

GUIDE = (ROOT / "docs" / "guide" / "embedding.md").read_text(encoding="utf-8")

COMPANY = "name: Acme\nroles:\n  - {name: Developer, handle: dev}\n"


def test_the_guide_has_every_argument_of_a_node() -> None:
    table = GUIDE.split("| argument |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)))
    assert sorted(named) == sorted(inspect.signature(Node).parameters)


@pytest.mark.parametrize("ended_by", ["signal", "command"])
def test_its_program_works_and_leaves_when_it_is_told(tmp_path: Path, ended_by: str) -> None:
    (tmp_path / "acme.yaml").write_text(COMPANY)
    text = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0]
    text = text.replace('data="data")', 'data="data", web=False)')  # its port may be in use here
    (tmp_path / "acme.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "acme.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        try:
            assert program.stdout is not None
            assert b"dev: Developer read: hello\n" in iter(program.stdout.readline, b"")
            if ended_by == "signal":
                program.send_signal(signal.SIGINT)
            else:
                command = [sys.executable, "-m", "crewlet", "drain", "--data", "data"]
                subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=30)
            _, complaints = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == 0, complaints.decode()
