"""House rules, read off the source: sizes, what is never used, and where topics are spelled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path for package in ("actors", "crewlet") for path in (ROOT / package).rglob("*.py")
)

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_LINE_LENGTH = 100

FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}

# Thespian's process bases unpickle what arrives from the network, and sourced loading runs it.
THESPIAN_NAMES = {
    "multiprocTCPBase",
    "multiprocUDPBase",
    "multiprocQueueBase",
    "simpleSystemBase",
    "loadActorSource",
    "unloadActorSource",
    "registerSourceAuthority",
    "preRegisterRemoteSystem",
    "notifyOnSystemRegistrationChanges",
    "notifyOnSourceAvailability",
}
THESPIAN_MODULES = {"thespian.director", "thespian.system.multiprocTCPBase"}

# The beginnings of the engine's own topics.
TOPIC = re.compile(r"crewlet\.(agent|events|notifications|config|memory)\.|dlq\.")

# Verbs of the admin endpoint, which look like topics and are none.
VERBS = {"dlq.list", "dlq.show", "dlq.replay", "dlq.drop"}

PURE = (
    "actors/machines/",
    "crewlet/a2a/channel.py",
    "crewlet/a2a/upkeep.py",
    "crewlet/inbound/outage.",
    "crewlet/inbound/routing",
    "crewlet/runs/row",
    "crewlet/sources/",
    "crewlet/schedule/rule",
    "crewlet/schedule/entry",
    "crewlet/schedule/fires",
    "crewlet/schedule/letters",
    "crewlet/schedule/memory",
    "crewlet/revisions/difference",
    "crewlet/revisions/retirement",
    "crewlet/revisions/revision",
    "crewlet/revisions/standing",
    "crewlet/revisions/start",
)
IMPURE_CALLS = {
    "time.time",
    "time.monotonic",
    "time.sleep",
    "datetime.now",
    "datetime.utcnow",
    "datetime.datetime.now",
    "date.today",
    "uuid.uuid4",
    "uuid.uuid1",
    "os.urandom",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def imported(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def calls(path: Path) -> Iterator[tuple[ast.Call, str]]:
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def docstrings(path: Path) -> set[int]:
    """The ids of the nodes that are docstrings, those of attributes included."""
    return {
        id(node.value)
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def fail_on(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 20


def test_files_are_short():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in SOURCES}
    fail_on([f"{name}: {n} lines" for name, n in lengths.items() if n > MAX_FILE_LINES])


def test_functions_are_short():
    fail_on(
        [
            f"{name_of(path)}:{node.lineno}: {node.name} has {length} lines"
            for path in SOURCES
            for node in nodes_of(path)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
        ]
    )


def test_lines_are_short():
    fail_on(
        [
            f"{name_of(path)}:{number}: {len(line)} characters"
            for path in SOURCES
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if len(line) > MAX_LINE_LENGTH
        ]
    )


def test_every_module_says_what_it_is():
    fail_on([name_of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))])


def test_nothing_turns_data_into_code():
    found = [
        f"{name_of(path)}:{line}: import {module}"
        for path in SOURCES
        for line, module in imported(path)
        if module.split(".")[0] in FORBIDDEN_MODULES
    ]
    for path in SOURCES:
        for call, name in calls(path):
            place = f"{name_of(path)}:{call.lineno}"
            if name in FORBIDDEN_CALLS:
                found.append(f"{place}: {name}()")
            if name in ("os.system", "os.popen") or name.endswith("create_subprocess_shell"):
                found.append(f"{place}: {name}()")
            if any(word.arg == "shell" and not _is_false(word.value) for word in call.keywords):
                found.append(f"{place}: shell=")
            if name in ("yaml.load", "yaml.load_all") and "Safe" not in ast.unparse(call):
                found.append(f"{place}: {name}() without a safe loader")
            if name in ("yaml.unsafe_load", "yaml.full_load"):
                found.append(f"{place}: {name}()")
    fail_on(found)


def test_no_process_base_of_thespian_and_no_sourced_loading():
    """actors/system alone may spell the names: it answers those calls with a refusal."""
    found = [
        f"{name_of(path)}:{line}: {module}"
        for path in SOURCES
        for line, module in imported(path)
        if module in THESPIAN_MODULES
        or module.split(".")[-1] in THESPIAN_NAMES
        or "multiproc" in module
    ]
    for path in SOURCES:
        if name_of(path).startswith("actors/system/"):
            continue
        spelled = docstrings(path)
        for node in nodes_of(path):
            word = _word(node) if id(node) not in spelled else ""
            if word in THESPIAN_NAMES:
                found.append(f"{name_of(path)}:{getattr(node, 'lineno', 0)}: {word}")
    fail_on(found)


@pytest.mark.certifies(15)
def test_topics_are_spelled_in_one_file():
    found = []
    for path in SOURCES:
        if name_of(path) == "crewlet/topics.py":
            continue
        spelled = docstrings(path)
        found += [
            f"{name_of(path)}:{node.lineno}: {node.value[:60]!r}"
            for node in nodes_of(path)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in spelled
            and node.value not in VERBS
            and TOPIC.match(node.value)
        ]
    fail_on(found)


def test_nothing_sleeps_with_the_loop_in_its_hands():
    fail_on(
        [
            f"{name_of(path)}:{call.lineno}: {name}()"
            for path in SOURCES
            for call, name in calls(path)
            if name == "time.sleep"
        ]
    )


def test_pure_cores_read_no_clock_and_no_dice():
    found = []
    for path in SOURCES:
        if not name_of(path).startswith(PURE):
            continue
        found += [
            f"{name_of(path)}:{call.lineno}: {name}()"
            for call, name in calls(path)
            if name in IMPURE_CALLS or name.startswith(("random.", "secrets."))
        ]
        found += [
            f"{name_of(path)}:{line}: import {module}"
            for line, module in imported(path)
            if module.split(".")[0] in ("random", "secrets", "time", "asyncio", "threading")
        ]
    fail_on(found)


def test_the_rules_would_find_what_they_look_for(tmp_path: Path):
    """A rule that finds nothing anywhere has to show that it could."""
    path = tmp_path / "bad.py"
    path.write_text(
        "import pickle\nimport time\nfrom thespian.system import multiprocTCPBase\n"
        'eval("1")\ntime.sleep(1)\nsubject = f"crewlet.agent.{time}.inbox"\n'
    )
    assert "pickle" in {module for _, module in imported(path)}
    assert "thespian.system.multiprocTCPBase" in {module for _, module in imported(path)}
    assert {"eval", "time.sleep"} <= {name for _, name in calls(path)}
    texts = [n.value for n in nodes_of(path) if isinstance(n, ast.Constant)]
    assert any(isinstance(text, str) and TOPIC.match(text) for text in texts)


def _is_false(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""
