"""Posting lists and sorted sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.probes.postings import Postings, SortedSet


@given(
    members=st.lists(st.integers(0, 2**60), unique=True),
    asked=st.lists(st.integers(0, 2**60), max_size=30),
)
@settings(deadline=None)
def test_members_are_found_and_nothing_else(members: list[int], asked: list[int]) -> None:
    found = SortedSet(np.array(sorted(members), dtype=np.int64))
    every = np.array([*asked, *members], dtype=np.int64)
    assert found(every).tolist() == [number in set(members) for number in every.tolist()]


@given(rows=st.lists(st.sets(st.integers(0, 6)).map(sorted), max_size=8))
@settings(deadline=None)
def test_postings_turn_and_sum(rows: list[list[int]]) -> None:
    postings = Postings.of_rows(rows, 7)
    assert [postings.row(i).tolist() for i in range(len(rows))] == rows
    back = postings.transposed().transposed()
    assert [back.row(i).tolist() for i in range(len(rows))] == rows
    values = np.arange(7.0) ** 2
    assert postings.sums(values) == pytest.approx([sum(values[j] for j in row) for row in rows])
