"""Quota headers of every form are read, and requests are spread so that the quota lasts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.http.pacing.quota_headers import RemainingQuota, remaining_quota
from afresh.sources.http.politeness import HostState, Politeness, ready_s, record_quota, record_start

NOW_S = 1.7e9
RULES = Politeness(delay_s=0.0)


@pytest.mark.parametrize(
    ("headers", "requests", "reset_s"),
    [
        ({"ratelimit": '"default";r=50;t=40'}, 50, 40),
        ({"ratelimit": '"default";r=0;t=1.5'}, 0, 1.5),
        ({"ratelimit": "limit=100, remaining=50, reset=40"}, 50, 40),
        ({"ratelimit": '"a";r=90;t=60, "b";r=10;t=3600'}, 10, 3600),
        ({"ratelimit-limit": "100", "ratelimit-remaining": "50", "ratelimit-reset": "40"}, 50, 40),
        ({"x-ratelimit-remaining": "7", "x-ratelimit-reset": "1700000040"}, 7, 40),
        ({"x-ratelimit-remaining": "7", "x-ratelimit-reset": "1700000040500"}, 7, 40.5),
        ({"x-ratelimit-remaining": "7", "x-ratelimit-reset": "1600000000"}, 7, 0),
    ],
)
def test_every_form_is_read(headers: Mapping[str, str], requests: float, reset_s: float) -> None:
    quota = remaining_quota(headers, NOW_S)
    assert quota is not None
    assert quota.requests == requests
    assert quota.reset_s == pytest.approx(reset_s)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ratelimit": "soon"},
        {"ratelimit": '"bytes";r=0;t=60;qu="content-bytes"'},
        {"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "60"},
        {"x-ratelimit-remaining": "0"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "Thu, 01 Jan 2026 00:00:00 GMT"},
    ],
)
def test_other_headers_are_no_quota(headers: Mapping[str, str]) -> None:
    assert remaining_quota(headers, NOW_S) is None


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=20))
def test_no_header_does_harm(ratelimit: str, remaining: str, reset: str) -> None:
    headers = {"ratelimit": ratelimit, "ratelimit-policy": ratelimit}
    headers |= {"x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
    quota = remaining_quota(headers, NOW_S)
    assert quota is None or (quota.requests >= 0 and 0 <= quota.reset_s <= 366 * 86400)


def test_a_policy_of_a_short_window_sets_the_spacing() -> None:
    headers = {"ratelimit": '"burst";r=5;t=1', "ratelimit-policy": '"burst";q=6;w=1'}
    quota = remaining_quota(headers, NOW_S)
    assert quota is not None
    assert quota.spacing_s == pytest.approx(1 / 6)


@given(st.integers(1, 60), st.floats(60.0, 1e5))
def test_a_quota_lasts_until_it_is_reset(allowed: int, window_s: float) -> None:
    host, now_s, sent = HostState(), 0.0, 0
    while True:
        now_s = max(now_s, ready_s(host, RULES))
        if now_s >= window_s:
            break
        sent += 1
        host = record_start(host, now_s)
        host = HostState(asked_s=host.asked_s)
        host = record_quota(host, RULES, now_s, RemainingQuota(allowed - sent, window_s - now_s))
    assert allowed - 1 <= sent <= allowed


def test_a_host_whose_quota_is_used_up_rests_until_the_reset() -> None:
    host = record_quota(HostState(), RULES, 100.0, RemainingQuota(0, 60.0))
    assert (ready_s(host, RULES), host.why) == (160.0, "its quota of requests is used up")
    assert record_quota(HostState(), RULES, 100.0, RemainingQuota(0, 0.0)).why == ""
