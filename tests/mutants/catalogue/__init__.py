"""Every planted fault of the project, by name."""

from __future__ import annotations

from tests.mutants.catalogue import (
    a2a,
    batch,
    budget,
    consumer,
    conversations,
    dispatch,
    effects,
    fleet,
    gateway,
    halves,
    jetstream,
    leaf,
    leaving,
    machines,
    outage,
    postal,
    promises,
    queue,
    reading,
    revisions,
    router,
    runs,
    schedule,
    teeth,
    twin,
)
from tests.mutants.mutant import Mutant

TIERS = (
    consumer,
    budget,
    batch,
    gateway,
    queue,
    dispatch,
    outage,
    effects,
    router,
    conversations,
    reading,
    a2a,
    runs,
    schedule,
    revisions,
    twin,
    jetstream,
    leaf,
    leaving,
    machines,
    fleet,
    postal,
    promises,
    teeth,
    halves,
)

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for tier in TIERS for mutant in tier.TIER.mutants}
