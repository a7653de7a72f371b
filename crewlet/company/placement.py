"""Where a role may be worked: its own word, else that of the innermost unit that has one."""

from __future__ import annotations

from crewlet.company.model import Placement
from crewlet.company.problems import Report
from crewlet.company.record import Record
from crewlet.topics import is_handle


def read_placement(record: Record, report: Report, inherited: Placement | None) -> Placement | None:
    """The placement of a role or a unit. It is inherited as a whole: a role that names a label
    keeps nothing of its unit's, and an empty one (`placement: {}`) may be worked anywhere."""
    placement = record.record("placement")
    if placement is None:
        return inherited
    node = placement.line("node")
    if node and not is_handle(node):
        report.add(
            *placement.at("node"),
            f"{placement.written('node')} is no name for a node: "
            "small letters, digits, '-' and '_', at most 63",
        )
    return Placement(node=node, labels=placement.filters("labels"))
