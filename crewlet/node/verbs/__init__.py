"""What a running node answers over its socket, and to other nodes: a closed table of verbs."""

from crewlet.node.verbs.desk import Desk, explained
from crewlet.node.verbs.operators import Operators
from crewlet.node.verbs.table import operations_of

__all__ = ["Desk", "Operators", "explained", "operations_of"]
