"""Dates and delays that servers state."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.statuses import http_date_s, retry_after_s


@given(st.text(max_size=40))
@settings(deadline=None)
def test_no_text_makes_dates_fail(text: str) -> None:
    date_s, wait_s = http_date_s(text), retry_after_s(text, 0.0)
    assert date_s is None or isinstance(date_s, float)
    assert wait_s is None or 0 <= wait_s <= 366 * 86400
