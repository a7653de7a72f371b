"""A node: everything of one process that serves a company, put together and taken apart."""

from crewlet.node.foreground import run_foreground
from crewlet.node.node import Node

__all__ = ["Node", "run_foreground"]
