"""What an operator is told of a move that the fleet does not make."""

from __future__ import annotations

import pytest

from actors.machines.placement import Demand, Member, may_work
from actors.outlook import why_not

NODE = Member("n2", {"zone": "east"}, roles=("seats",))


@pytest.mark.parametrize(
    ("member", "demand", "said"),
    [
        (NODE, Demand(), ""),
        (NODE, Demand(node="n2", labels=(("zone", "east"),)), ""),
        (Member("n2", open=False), Demand(), "it drains"),
        (NODE, Demand(node="n1"), "that is placed on n1"),
        (NODE, Demand(labels=(("gpu", "yes"), ("zone", "east"))), "it lacks gpu=yes"),
        (Member("n2", roles=("ingress",)), Demand(), "its roles leave out seats"),
    ],
)
def test_each_reason_against_a_node_is_said(member: Member, demand: Demand, said: str) -> None:
    assert why_not(member, demand) == said
    assert may_work(member, demand) == (said == "")
