"""Whom a turn may ask: those who would be refused are not offered."""

from __future__ import annotations

import pytest

from crewlet.a2a.asking import MAX_DEPTH
from crewlet.a2a.reachable import reachable
from crewlet.company import parse_company
from crewlet.turn import Turn
from tests.a2a.scene import Scene

pytestmark = pytest.mark.certifies(213, 217)

COMPANY = """
name: Company T
roles:
  - {name: Root, handle: root}
units:
  - name: Sales
    roles: [{name: Sam, handle: sam}]
  - name: Platform
    roles: [{name: Pat, handle: pat}, {name: Boss, handle: boss, kind: human}]
    children:
      - name: Core
        roles: [{name: Cora, handle: cora}, {name: Carl, handle: carl}]
"""


def test_the_nearest_come_first_and_neither_oneself_nor_a_human() -> None:
    company = parse_company(COMPANY, env={})
    assert [seat.handle for seat in reachable(company, "carl")] == ["cora", "pat", "root", "sam"]
    assert next(seat.handle for seat in reachable(company, "sam")) == "root"
    assert len(reachable(company, "nobody")) == 5


def test_a_turn_knows_its_colleagues_until_its_work_was_handed_on_too_often() -> None:
    seen: list[tuple[int, list[str]]] = []

    async def passes_on(turn: Turn) -> object:
        colleagues = [seat.handle for seat in turn.colleagues()]
        seen.append((turn.delegation_depth, colleagues))
        if turn.events[0].type == "a2a_message" or not colleagues:
            return "done"
        return await turn.ask(colleagues[0], "and you?")

    scene = Scene(dev=passes_on, ops=passes_on)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until_closed()
        asked = [colleagues for depth, colleagues in seen if depth < MAX_DEPTH]
        assert asked and all(colleagues in (["ops"], ["dev"]) for colleagues in asked)
        deepest = [colleagues for depth, colleagues in seen if depth == MAX_DEPTH]
        assert deepest and deepest[0] == []

    scene.play(play)
