"""The suites over a leaf: every other client is at the member's own server, the rest behind it.

What differs from one server: a pull goes on taking for its first two seconds, so that ending one
takes as long; what is on its way when it ends is lost on the way, and handed back.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from crewlet.broker.domain import DOMAIN
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.leaf import LeafSettings, leaf_link
from crewlet.broker.port import CompanyBroker
from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.broker.leaves import LEAF_SECRET, Hub
from tests.broker.real import until
from tests.conformance.real_harness import RealHarness

OFTEN = {
    "a_message_handed_out_is_nobody_else_s",
    "a_hand_back_is_confirmed_at_the_head",
    "a_recalled_fetch_ends_at_once_and_strands_nothing",
    "a_cancelled_fetch_strands_nothing",
    "a_release_that_races_mail_hands_it_back_in_order",
    "an_abandoned_fetch_ends_empty_and_swallows_nothing",
    "reclaim_hands_back_in_order_and_with_counts",
    "the_largest_message_fits_into_a_dead_letter",
    "every_server_answers_across_clients",
    "nobody_serving_is_an_empty_answer_at_once",
    "recent_are_the_newest_and_the_oldest_of_them_first",
    "an_update_needs_the_last_revision",
    "a_watch_hears_what_is_there_then_what_is_written",
    "what_was_recorded_is_there",
    "nothing_is_recorded_after_the_seat_changed_hands",
}
"""What a leaf is most likely to break; the others are for `-m long`."""


class AtALeaf:
    """A member and a leaf of it; whoever asks is at the one or at the other."""

    def __init__(self, folder: Path) -> None:
        self._hub = Hub(folder)
        settings = LeafSettings(urls=(f"127.0.0.1:{self._hub.leaf_port}",), secret=LEAF_SECRET)
        self._leaf = EmbeddedServer(folder / "leaf", sync=None, leaf=leaf_link(settings, "leaf"))
        self._turns = itertools.count()

    async def start(self) -> None:
        await asyncio.gather(self._hub.server.start(), self._leaf.start())
        await until(lambda: "Leafnode connection created" in self._leaf.log.read_text())

    def client(self, node_id: str) -> CompanyBroker:
        if next(self._turns) % 2:
            return self._hub.client(node_id)
        return JetStreamBroker(replace(self._leaf.address, name=node_id, domain=DOMAIN))

    async def restart(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        await asyncio.gather(self._hub.server.stop(), self._leaf.stop())


@pytest.fixture(scope="module")
def leaf(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtALeaf]:
    leaf = AtALeaf(tmp_path_factory.mktemp("leaf"))
    runner.run(leaf.start())
    yield leaf
    runner.run(leaf.stop())


CASES = [
    pytest.param(
        case,
        id=case.name,
        marks=[
            pytest.mark.certifies(10, *case.lines),
            *([] if case.name in OFTEN else [pytest.mark.long]),
        ],
    )
    for case in (*broker_cases, *store_cases)
    if case.needs is None
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case, runner: asyncio.Runner, leaf: AtALeaf) -> None:
    harness = RealHarness(leaf, case.name)

    async def main() -> None:
        try:
            async with asyncio.timeout(60):
                await case.run(harness)
        finally:
            await harness.close()

    runner.run(main())
