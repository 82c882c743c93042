"""What is new in a listing: births, deaths and notices."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.values.listing import ListingEntry, compare_listing

KEYS = st.sampled_from("abcdef")


@given(
    st.dictionaries(KEYS, st.sampled_from(["", "1", "2"])),
    st.dictionaries(KEYS, st.sampled_from(["", "1", "2"])),
)
@settings(deadline=None)
def test_births_deaths_and_notices_turn_the_old_listing_into_the_new(
    before: dict[str, str], now: dict[str, str]
) -> None:
    entries = [ListingEntry(key, mark) for key, mark in now.items()]
    found = compare_listing(before, entries, complete=True)
    assert set(before) - set(found.deaths) | set(found.births) == set(now)
    assert set(found.notices) == {
        key for key in set(before) & set(now) if now[key] and now[key] != before[key]
    }
    assert compare_listing(before, entries, complete=False).deaths == ()
    assert compare_listing(now, entries, complete=True) == compare_listing({}, [], complete=True)
