"""The newest changes are searched page by page, with a limited effort for each page."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.engine.feed import change_search
from afresh.engine.feed.change_search import ChangeFilter, search_changes
from afresh.values.changes import FeedEntry
from afresh.values.errors import InputError, UsageError
from afresh.values.outcome import EVENT_KINDS, EventKind


def entry(number: int, key: str = "a", kind: EventKind = "changed", share: float | None = None) -> FeedEntry:
    return FeedEntry(f"1-{number}-00", 1, key, "web", kind, 2, float(number), None, 1, 1, share)


class Feed:
    """Changes in a list, which counts how many were read."""

    def __init__(self, entries: Sequence[FeedEntry]) -> None:
        self.entries, self.read = list(entries), 0

    def newest(self, limit: int, source: str | None = None, before: str | None = None) -> Sequence[FeedEntry]:
        end = len(self.entries) if before is None else int(before.split("-")[1]) - 1
        found = [one for one in reversed(self.entries[:end]) if source in (None, one.source)][:limit]
        self.read += len(found)
        return found


@given(st.lists(st.sampled_from(EVENT_KINDS), max_size=40), st.integers(1, 7), st.sampled_from(["", "gone"]))
def test_pages_have_every_change_that_matches_once(kinds: list[EventKind], limit: int, wanted: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_search, "_READ_AT_ONCE", 5)
        patch.setattr(change_search, "_MOST_READ", 10)
        feed = Feed([entry(number, kind=kind) for number, kind in enumerate(kinds, 1)])
        found: list[FeedEntry] = []
        cursor: str | None = None
        while True:
            page = search_changes(feed, ChangeFilter(kind=wanted), limit, cursor)
            assert len(page.entries) <= limit
            found += page.entries
            if page.cursor is None:
                break
            cursor = page.cursor
    assert found == [one for one in reversed(feed.entries) if wanted in ("", one.kind)]


def test_a_search_in_vain_reads_a_limited_number() -> None:
    feed = Feed([entry(number) for number in range(1, 30_001)])
    page = search_changes(feed, ChangeFilter(text="nowhere"), 50)
    assert (list(page.entries), feed.read) == ([], 20_000)
    assert page.cursor is not None
    assert search_changes(feed, ChangeFilter(text="nowhere"), 50, page.cursor).cursor is None


def test_small_changes_are_left_out_but_not_those_of_unknown_size() -> None:
    feed = Feed([entry(1, share=0.01), entry(2, share=0.2), entry(3), entry(4, kind="gone")])
    found = search_changes(feed, ChangeFilter(min_change=0.05), 9).entries
    assert [one.time_s for one in found] == [4.0, 3.0, 2.0]
    assert search_changes(Feed([]), ChangeFilter(source="nobody"), 9).entries == []


def test_wrong_filters_are_named() -> None:
    with pytest.raises(UsageError, match="kind of change"):
        ChangeFilter(kind="moved")
    with pytest.raises(InputError, match="share from 0 to 1"):
        ChangeFilter(min_change=5)
