"""The sample is the same in whatever order, and in whatever parts, the items come."""

from __future__ import annotations

import numpy as np

from afresh.rates.item_sample import hash_keys_evenly, join_samples, polls_of_sample, sample_keys
from afresh.rates.poll_table import PollTable, polls_from_intervals

KEYS = [f"https://example.org/page/{number}" for number in range(5000)]


def polls_of(keys: list[str]) -> PollTable:
    """Two polls of each item, whose intervals tell the key."""
    numbers = np.array([float(key.rpartition("/")[2]) for key in keys])
    item = np.repeat(np.arange(len(keys)), 2)
    return polls_from_intervals(1 + np.repeat(numbers, 2), item % 2 == 0, item=item)


def test_order_does_not_matter() -> None:
    mixed = [KEYS[at] for at in np.random.default_rng(0).permutation(len(KEYS))]
    assert [KEYS[at] for at in sample_keys(KEYS, 100)] == [mixed[at] for at in sample_keys(mixed, 100)]


def test_hashes_are_even_and_those_of_high_and_low_bits_independent() -> None:
    hashes = hash_keys_evenly(KEYS)
    chosen = hashes < np.uint64(1 << 63)
    assert abs(chosen.mean() - 0.5) < 0.03
    bucket = (hashes & np.uint64(7)).astype(int)
    assert abs(np.bincount(bucket[chosen], minlength=8) / chosen.sum() - 1 / 8).max() < 0.03


def test_the_samples_of_parts_make_that_of_all() -> None:
    whole = sample_keys(KEYS, 300)
    parts = [KEYS[0:1000], KEYS[1000:1001], KEYS[1001:]]
    samples = []
    for keys in parts:
        own = sample_keys(keys, 300)
        samples.append(([keys[at] for at in own], polls_of_sample(polls_of(keys), own)))
    keys, polls = join_samples(samples, 300)
    assert keys == [KEYS[at] for at in whole]
    expected = polls_of_sample(polls_of(KEYS), whole)
    np.testing.assert_array_equal(polls.item, expected.item)
    np.testing.assert_array_equal(polls.elapsed, expected.elapsed)
