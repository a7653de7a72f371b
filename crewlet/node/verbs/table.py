"""The closed table: every verb of a node, by name."""

from __future__ import annotations

from collections.abc import Mapping

from crewlet.node.verbs.channel import ChannelVerbs
from crewlet.node.verbs.company import CompanyVerbs
from crewlet.node.verbs.fleet import FleetVerbs
from crewlet.node.verbs.inside import InsideVerbs
from crewlet.node.verbs.letters import LetterVerbs
from crewlet.node.verbs.operation import AnyOperation
from crewlet.node.verbs.revisions import RevisionVerbs
from crewlet.node.verbs.run import RunVerbs
from crewlet.node.verbs.schedule import ScheduleVerbs
from crewlet.node.verbs.seat import SeatVerbs
from crewlet.node.verbs.top import TopVerbs
from crewlet.node.verbs.tracing import TraceVerbs
from crewlet.node.verbs.why import WhyVerbs
from crewlet.node.view import NodeView


def operations_of(node: NodeView) -> Mapping[str, AnyOperation]:
    """Name, arguments, what answers, and where."""
    return {
        **CompanyVerbs(node).table(),
        **LetterVerbs(node).table(),
        **ChannelVerbs(node).table(),
        **RevisionVerbs(node).table(),
        **SeatVerbs(node).table(),
        **RunVerbs(node).table(),
        **FleetVerbs(node).table(),
        **InsideVerbs(node).table(),
        **TraceVerbs(node).table(),
        **WhyVerbs(node).table(),
        **ScheduleVerbs(node).table(),
        **TopVerbs(node).table(),
    }
