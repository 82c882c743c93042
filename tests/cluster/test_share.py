"""A share ends by itself, and its limiter never lets more requests start than it allows."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from afresh.cluster.share import Share, ShareLimiter, ShareNumber

gaps = st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60)


def share(epoch: int, rate: float, burst: float) -> Share:
    return Share(ShareNumber(1, epoch), rate, burst)


@given(gaps, st.floats(0.1, 20.0), st.floats(1.0, 30.0))
def test_requests_stay_within_rate_and_burst(waits: list[float], rate: float, burst: float) -> None:
    limiter, now_s = ShareLimiter(), 0.0
    limiter.hold(share(1, rate, burst), 0.0, 1e6)
    starts: list[float] = []
    for wait_s in waits:
        now_s += wait_s
        while limiter.ready_s(now_s) <= now_s:
            limiter.record_start(now_s)
            starts.append(now_s)
    for first, start_s in enumerate(starts):
        for last in range(first, len(starts)):
            allowed = rate * (starts[last] - start_s) + burst
            assert last - first + 1 <= allowed + 1e-6


def test_a_share_ends_by_itself_and_takes_its_tokens_along() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(1, 10.0, 10.0), 0.0, 5.0)
    assert limiter.ready_s(4.0) == 4.0
    assert limiter.ready_s(5.0) == math.inf
    limiter.hold(share(1, 10.0, 10.0), 6.0, 11.0)
    assert limiter.ready_s(6.0) == 6.1


def test_an_older_share_that_arrives_late_changes_nothing() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(2, 1.0, 1.0), 0.0, 5.0)
    assert not limiter.hold(share(1, 100.0, 100.0), 1.0, 50.0)
    assert limiter.share == share(2, 1.0, 1.0)
    assert limiter.until_s == 5.0


def test_the_same_share_again_only_ends_later() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(1, 1.0, 1.0), 0.0, 9.0)
    limiter.hold(share(1, 1.0, 1.0), 1.0, 6.0)  # the answer to an earlier report
    assert limiter.until_s == 9.0


def test_a_smaller_share_cuts_what_was_saved_up() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(1, 10.0, 10.0), 0.0, 99.0)
    limiter.hold(share(2, 1.0, 1.0), 50.0, 99.0)
    limiter.record_start(50.0)
    assert limiter.ready_s(50.0) == 51.0


def test_a_dropped_share_allows_nothing_and_its_number_stays() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(3, 10.0, 10.0), 0.0, 99.0)
    limiter.drop()
    assert limiter.ready_s(50.0) == math.inf
    assert not limiter.hold(share(2, 10.0, 10.0), 51.0, 99.0)


def test_a_share_of_less_than_one_request_allows_none() -> None:
    limiter = ShareLimiter()
    limiter.hold(share(1, 10.0, 0.9), 0.0, 99.0)
    assert limiter.ready_s(50.0) == math.inf
