"""Faults of M6 and M9 that no seed sees, because another defence stands behind each. A case of its
own does; with the other defences off too, seeds do (fleet.py)."""

from __future__ import annotations

from tests.mutants.catalogue.cases import SIMULATED
from tests.mutants.catalogue.fleet import acks_what_was_refused, starts_under_any_session
from tests.mutants.mutant import Patches, Tier

TIER = Tier("unit")


@TIER.fault(
    f"{SIMULATED}/test_gates.py::test_a_turn_whose_completion_was_refused_comes_to_nothing",
    lines=(280,),
    note="M6, S7: on 0 of 32 seeds. Its seat is taken down before the refusal is heard of, and "
    "the gate at each settlement is shut by then",
)
def m6_zombie_acks_after_rejection(patch: Patches) -> None:
    """A turn whose completion was refused is acknowledged: its message is gone under the hands
    of the successor."""
    acks_what_was_refused(patch)


@TIER.fault(
    f"{SIMULATED}/test_gates.py"
    "::test_a_turn_needs_a_renewal_of_a_moment_ago_and_a_settlement_a_session",
    lines=(272,),
    note="M9, S3: on 0 of 52 seeds. The supervisor's hold is there in the very instant in which "
    "a node wakes",
)
def m9_turn_gate_only_in_supervisor(patch: Patches) -> None:
    """A seat does not ask at the start of a turn; it trusts its supervisor to hold it in time."""
    starts_under_any_session(patch)
