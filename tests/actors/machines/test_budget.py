"""What a delivery costs: backoff by failures, dead letters by deliveries."""

from __future__ import annotations

import pytest
from consumer_caller import letter
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.delivery import BUDGET, Dead, HandBack, Retry
from actors.machines.budget import Failures, backoff_s, give_back, spent


@pytest.mark.certifies(37)
def test_backoff_is_one_second_doubling_to_thirty() -> None:
    assert [backoff_s(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert backoff_s(10**9) == 30.0
    assert 9 * 60 < sum(backoff_s(n) for n in range(1, BUDGET)) < 11 * 60


@pytest.mark.parametrize("failures", [0, -1])
def test_no_failure_earns_no_backoff(failures: int) -> None:
    with pytest.raises(ValueError, match="needs a failure"):
        backoff_s(failures)


@pytest.mark.certifies(43, 51, 56)
@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.one_of(st.none(), st.integers(0, 60)), st.one_of(st.none(), st.floats(0, 30)))
def test_the_budget_ends_at_its_last_delivery_and_an_unknown_count_never(
    count: int | None, retry_after_s: float | None
) -> None:
    one = letter(1, count=count)
    last = count is not None and count >= BUDGET
    assert spent(one.delivery) is last
    assert (one.headroom == 0) is last
    verdict = give_back(one.delivery, "why", retry_after_s)
    if last:
        assert verdict == Dead("why")
    elif retry_after_s is None:
        assert verdict == HandBack()
    else:
        assert verdict == Retry(retry_after_s)


@pytest.mark.certifies(37)
def test_failures_are_counted_for_each_message_and_forgotten_with_it() -> None:
    failures = Failures()
    assert [failures.failed(1), failures.failed(1), failures.failed(2)] == [1, 2, 1]
    failures.forget(1)
    failures.forget(99)
    assert (failures.failed(1), failures.failed(2)) == (1, 2)
    failures.clear()
    assert len(failures) == 0
