"""A secret of all the letters that configuration languages care about: used, and never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.commands import crewlet
from tests.end_to_end.harness import COMPANY, Company, comment, until

SECRET = "!p$HOME: #x'\"\n{é}"
FORMS = (SECRET, json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1], "!p$HOME", "#x'", "{é}")
"""Whole, as JSON, as Python, and the parts that no escaping touches."""

HANDLER = """
import json, os, sys
json.load(sys.stdin)
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(dict(os.environ)) + "\\n")
print("done")
"""


def _shows(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


@pytest.mark.field("C28")
@pytest.mark.certifies(131)
def test_a_secret_verifies_deliveries_and_is_seen_nowhere(tmp_path: Path) -> None:
    # A comment is no configuration: what it names need not be set.
    company = Company(tmp_path, "# see ${NOT_SET} and costs $5\n" + COMPANY)
    (tmp_path / "recorder.py").write_text(HANDLER)
    env = {"T_SECRET": SECRET, "T_OTHER": f"prefix {SECRET} suffix", "T_PLAIN": "kept"}
    node = company.start(env=env)
    try:
        asked = comment(1, "@octo-dev look")
        assert node.post("issue_comment", asked, secret=SECRET) == 202
        assert node.post("issue_comment", asked, secret=SECRET.replace("$HOME", "")) == 401
        assert node.post("issue_comment", asked, secret=SECRET.strip("{é}")) == 401
        until(company.record.exists, why="the turn ran")
        node.idle()
        seen = json.loads(company.record.read_text().splitlines()[0])
        assert "T_SECRET" not in seen and "T_OTHER" not in seen, "no command is given it"
        assert seen["T_PLAIN"] == "kept", "the rest of the environment is"
        assert not _shows(company.record.read_text().replace("\\u00e9", "é"))
        for command in ("status", "seats", "events --last 1000", "dlq list"):
            run = crewlet(company.data, *command.split(), "-o", "json")
            assert run.returncode == 0, run.stderr
            json.loads(run.stdout)
            assert not _shows(run.stdout + run.stderr), command
            table = crewlet(company.data, *command.split()) if command != "status" else run
            assert not _shows(table.stdout), command
        checked = crewlet(company.data, "check", str(company.file), env=env)
        assert checked.returncode == 0 and not _shows(checked.stdout)
        assert node.stop() == 0
    finally:
        node.end()
    assert not _shows(company.log.read_text())
    kept = [path for path in company.data.rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        held = path.read_bytes()
        assert not [form for form in FORMS if form.encode() in held], path


@pytest.mark.field("C28")
@pytest.mark.parametrize(("value", "word"), [(None, "not set"), ("", "empty")])
def test_a_secret_that_is_missing_or_empty_is_refused_by_its_name(
    tmp_path: Path, value: str | None, word: str
) -> None:
    company = Company(tmp_path)
    line = company.file.read_text().splitlines().index("    secret: ${T_SECRET}") + 1
    env = {} if value is None else {"T_SECRET": value}
    run = crewlet(company.data, "up", str(company.file), "--port", "0", env=env)
    assert run.returncode == 2
    assert "T_SECRET" in run.stderr and word in run.stderr, run.stderr
    assert f"company.yaml:{line}:" in run.stderr and "integrations.github.secret" in run.stderr
    assert not company.data.exists(), "refused before anything is made"


@pytest.mark.field("C28")
def test_a_python_handlers_traceback_does_not_show_it(tmp_path: Path) -> None:
    """What a callable does with the environment of its own process is its own affair; what we
    print of a failure is ours."""
    company = Company(tmp_path)
    (tmp_path / "failing.py").write_text("def work(turn):\n    raise ValueError('told to fail')\n")
    text = company.file.read_text().splitlines()
    text = ["  python: failing:work" if "command:" in line else line for line in text]
    company.file.write_text("\n".join(text))
    node = company.start(env={"T_SECRET": SECRET})
    try:
        node.send("dev", "go")
        completed = until(lambda: node.events("agent_turn_completed"), why="the turn has failed")
        assert completed[0]["reason"] == "ValueError: told to fail"
    finally:
        node.kill()
    assert not _shows(company.log.read_text())
