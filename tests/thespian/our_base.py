"""A pytest plugin: Thespian's own tests meet our base wherever they would meet theirs.

Their fixture `asys` is replaced before their modules import it; their simple base, and the
name our base goes by, are modules that make ours. What does not apply is deselected by the
patterns of not_applicable.txt; a pattern that matches nothing is an error.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import thespian.system
import thespian.test
from thespian.actors import ActorSystem

from actors.system import AsyncioSystemBase

NAME = "asyncioBase"
RULES = Path(__file__).with_name("not_applicable.txt")


def made_for(system: ActorSystem, logDefs: object = None) -> AsyncioSystemBase:
    """What Thespian calls to make a base of a given name."""
    base = AsyncioSystemBase()
    base.bind(system)
    return base


def install(name: str) -> None:
    module = types.ModuleType(f"thespian.system.{name}")
    module.ActorSystemBase = made_for
    sys.modules[module.__name__] = module
    setattr(thespian.system, name, module)


@pytest.fixture(params=[NAME])
def asys(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    base = AsyncioSystemBase()
    allowed = {"Foo Allowed": True, "Cows Allowed": True, "Dogs Allowed": True, "dog": "food"}
    system = ActorSystem(systemBase=base, capabilities=allowed, transientUnique=True)
    base.bind(system)
    system.base_name = NAME
    system.port_num = None
    system.txonly = False
    yield system
    system.shutdown()


install(NAME)
install("simpleSystemBase")
thespian.test.asys = asys


def rules() -> list[tuple[str, str]]:
    """The patterns and their reasons; both are needed."""
    found = []
    for line in RULES.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            if not reason.strip():
                raise pytest.UsageError(f"{RULES.name}: no reason for {pattern}")
            found.append((pattern, reason.strip()))
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    counts = dict.fromkeys(rules(), 0)
    kept, dropped = [], []
    for item in items:
        name = item.nodeid.rpartition("test/")[2].replace("[", "(").replace("]", ")")
        rule = next((rule for rule in counts if fnmatch.fnmatchcase(name, rule[0])), None)
        if rule is None:
            kept.append(item)
        else:
            counts[rule] += 1
            dropped.append(item)
    idle = [pattern for (pattern, _), count in counts.items() if not count]
    if idle:
        raise pytest.UsageError(f"{RULES.name}: patterns that match no test: {', '.join(idle)}")
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept
    on_base = sum("asys" in getattr(item, "fixturenames", ()) for item in kept)
    leave("collected", {"not_applicable": len(dropped), "on_our_base": on_base})


def leave(name: str, counts: dict[str, int]) -> None:
    """Leave counts for the runner. Every worker collects the same and says the same."""
    path = Path(os.environ["THESPIAN_COUNTS"], f"{name}.{os.getpid()}")
    path.write_text(json.dumps(counts))
    path.rename(path.with_suffix(".json"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    keys = ("passed", "failed", "error", "skipped")
    leave("ended", {key: len(stats.get(key, ())) for key in keys})
