"""Faults of a leaf, and of whoever shares a member with one."""

from __future__ import annotations

from crewlet.broker import leaf_link
from crewlet.broker.leaf_link import News
from crewlet.broker.pull import Pull
from tests.mutants.mutant import Patches, Tier

TIER = Tier("leaf")


@TIER.fault(
    "tests/conformance/test_leaf_real.py::test_case[a_recalled_fetch_ends_at_once_and_strands_nothing]",
    lines=(10, 35),
)
def young_pull_is_believed_over(patch: Patches) -> None:
    """A pull is ended while its server still gives it mail that nobody takes."""

    async def at_once(pull: Pull) -> None:
        return None

    patch.set(Pull, "_grown", at_once)


@TIER.fault("tests/broker/test_leaf.py::test_a_link_that_breaks_strands_nothing", lines=(10,))
def broken_link_is_not_noticed(patch: Patches) -> None:
    """The client is connected to its leaf all along, and goes on waiting for what was lost."""

    def nothing(lines: str) -> News:
        return News(False, "")

    patch.set(leaf_link, "news", nothing)
