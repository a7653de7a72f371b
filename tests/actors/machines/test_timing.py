"""The numbers of a lease: which go together, and what a row may say of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from actors.machines.lease import Begin, Looked, SessionMachine, Write
from actors.machines.timing import LONGEST_TTL_S, TTL, Timing, patience_s, scaled

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def test_the_defaults_outlast_the_election_of_a_brokers_leader() -> None:
    assert Timing().valid_s > 11.4 and Timing().valid_s == 17


@pytest.mark.parametrize("ttl_s", [0.5, 3, 20, 45, LONGEST_TTL_S])
def test_another_ttl_keeps_the_proportions(ttl_s: float) -> None:
    by = ttl_s / 20
    assert astuple(scaled(ttl_s)) == pytest.approx([each * by for each in astuple(Timing())])


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.floats(0.01, 5000), st.floats(0.001, 5000), st.floats(0.001, 5000))
def test_what_is_accepted_survives_one_lost_renewal(
    ttl: float, renew: float, margin: float
) -> None:
    try:
        timing = scaled(ttl, renew, margin)
    except ValueError as error:
        assert "above zero" in str(error) or "ttl_s - margin_s" in str(error)
        assert ttl > LONGEST_TTL_S or margin > LONGEST_TTL_S or 2 * renew >= ttl - margin
    else:
        assert 2 * timing.renew_s < timing.valid_s < timing.ttl_s
        assert timing.renew_s < timing.confirm_s <= timing.valid_s


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.tuples(*[NUMBERS] * 6))
def test_no_number_is_odd_enough_to_slip_through(numbers: tuple[float, ...]) -> None:
    try:
        timing = Timing(**dict(zip(Timing.__struct_fields__, numbers, strict=True)))
    except ValueError:
        return
    assert all(0 < number <= LONGEST_TTL_S for number in astuple(timing))


def test_a_ttl_that_nobody_would_wait_for_is_refused() -> None:
    """Others cap what a row says, so a session of more would be ended while it is valid."""
    with pytest.raises(ValueError, match="at most 3600 s"):
        Timing(ttl_s=2 * LONGEST_TTL_S)


@pytest.mark.parametrize(
    ("stated", "patience"),
    [
        ("45", 45),
        ("5", 20),
        ("1e9", LONGEST_TTL_S),
        ("-1", 20),
        *[(odd, 20) for odd in ("", "nan", "inf", "-inf", "soon", "20s")],
    ],
)
def test_whoever_waits_waits_for_the_longer_of_the_two(stated: str, patience: float) -> None:
    assert patience_s({TTL: stated}, 20.0) == patience
    assert patience_s({}, 20.0) == 20.0


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.floats(0.1, LONGEST_TTL_S))
def test_a_row_states_the_ttl_to_the_last_digit(ttl_s: float) -> None:
    machine = SessionMachine("n", "n:1", scaled(ttl_s))
    machine.step(Begin({}), 0.0)
    [write] = [e for e in machine.step(Looked(None), 0.0) if isinstance(e, Write)]
    assert patience_s(write.lease.about, 0.01) == ttl_s
