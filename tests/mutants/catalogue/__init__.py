"""Every planted fault of the project, by name."""

from __future__ import annotations

from tests.mutants.catalogue import (
    batch,
    budget,
    consumer,
    dispatch,
    gateway,
    jetstream,
    queue,
    router,
    twin,
)
from tests.mutants.mutant import Mutant

TIERS = (consumer, budget, batch, gateway, queue, dispatch, router, twin, jetstream)

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for tier in TIERS for mutant in tier.TIER.mutants}
