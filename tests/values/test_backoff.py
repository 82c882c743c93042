"""Backoff: the waits that the parts of afresh have between two attempts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from afresh.values.backoff import Backoff


@given(
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e6),
    st.floats(1.0, 4.0),
    st.integers(0, 40),
    st.integers(1, 10**9),
)
def test_waits_never_shrink_and_never_pass_the_limit(
    first_s: float, longest_s: float, factor: float, most_steps: int, failures: int
) -> None:
    backoff = Backoff(first_s, longest_s, factor, most_steps)
    assert backoff.wait_s(failures) <= backoff.wait_s(failures + 1) <= longest_s
    assert backoff.wait_s(0) == backoff.wait_s(1) == min(first_s, longest_s)


def test_the_waits_of_every_part_can_be_said() -> None:
    listings = Backoff(first_s=1.0, longest_s=300.0)
    assert [listings.wait_s(1 + times) for times in (0, 1, 9, 60)] == [1.0, 2.0, 300.0, 300.0]
    hooks = Backoff(first_s=2.0, longest_s=3600.0)
    assert [hooks.wait_s(attempts) for attempts in (1, 5, 12, 99)] == [2.0, 32.0, 3600.0, 3600.0]
    robots = Backoff(first_s=60.0, longest_s=86400.0, most_steps=10)
    assert [robots.wait_s(failures) for failures in (1, 3, 11, 12)] == [60.0, 240.0, 61440.0, 61440.0]
    polls = Backoff(first_s=30.0, longest_s=86400.0)
    refused_longer = 8.0
    assert polls.wait_s(2, jitter=refused_longer) == 480.0
    assert polls.wait_s(30, jitter=refused_longer) == 86400.0
