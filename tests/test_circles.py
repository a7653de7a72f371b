"""No file needs another that needs it: what runs has no circle of imports.

Names that are for a type checker only are left out: an actor and its cell know each other's type.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_files_need_each_other() -> None:
    graph = grimp.build_graph("actors", "crewlet", exclude_type_checking_imports=True)
    needs = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def _edges(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    for one in graph.modules:
        for other in graph.find_modules_directly_imported_by(one):
            yield one, other


def test_the_graph_is_not_empty() -> None:
    graph = grimp.build_graph("actors", "crewlet", exclude_type_checking_imports=True)
    assert ("actors.gateway", "actors.custody") in set(_edges(graph))
