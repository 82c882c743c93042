"""Packed observations: everything comes back, whatever went in, and in few bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.stores.codecs import append_observations, count_observations, decode_runs, last_time_us
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns

# Whole eighths of a second are whole microseconds and exact in floating point: equality is asked for.
times = st.integers(-(2**36), 2**36).map(lambda eighths: eighths / 8)
observations = st.builds(
    Observation,
    item_id=st.just(1),
    time_s=times,
    elapsed_s=times,
    changed=st.booleans(),
    modified_s=st.none() | times,
    count=st.none() | st.integers(0, 2**40),
    audit=st.booleans(),
)


def rows(columns: ObservationColumns) -> list[Observation]:
    """Back to values."""
    lists = [getattr(columns, name).tolist() for name in ObservationColumns.__slots__]
    return [
        Observation(i, t, e, c, None if m != m else m, None if n != n else int(n), a)
        for i, t, e, c, m, n, a in zip(*lists, strict=True)
    ]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(observations, max_size=6), max_size=6))
def test_every_observation_of_every_run_comes_back(groups: list[list[Observation]]) -> None:
    runs = [append_observations(None, group) for group in groups]
    # Items in falling order, so that the sorting has work to do.
    item_ids = [len(groups) - index for index in range(len(groups))]
    found = rows(decode_runs(item_ids, runs))
    expected = [
        Observation(item_id, o.time_s, o.elapsed_s, o.changed, o.modified_s, o.count, o.audit)
        for item_id, group in zip(item_ids, groups, strict=True)
        for o in group
    ]
    assert found == sorted(expected, key=lambda o: (o.item_id, o.time_s))


@settings(deadline=None, max_examples=30)
@given(st.lists(observations, max_size=6), st.lists(observations, min_size=1, max_size=6))
def test_appending_is_the_same_as_packing_at_once(
    before: list[Observation], after: list[Observation]
) -> None:
    run = (
        append_observations(append_observations(None, before), after)
        if before
        else append_observations(None, after)
    )
    assert run == append_observations(None, before + after)
    assert count_observations(run) == len(before) + len(after)
    assert last_time_us(run) == after[-1].time_s * 1e6


def test_a_year_of_daily_polls_takes_nine_bytes_each() -> None:
    day = 86400.0
    run = append_observations(
        None, [Observation(1, 1.7e9 + day * i, day if i else 0.0, i % 9 == 0) for i in range(365)]
    )
    assert len(run) < 9.1 * 365


def test_times_are_kept_to_the_microsecond() -> None:
    time = 1_712_345_678.123_456_7
    found = decode_runs([1], [append_observations(None, [Observation(1, time, 0.1 + 0.2, changed=True)])])
    np.testing.assert_allclose([found.time_s[0], found.elapsed_s[0]], [time, 0.3], rtol=0, atol=0.6e-6)
