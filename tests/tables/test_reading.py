"""Repeated keys are found, and colliding hashes are not taken for them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.tables.columns import is_misspelling
from afresh.tables.reading import find_repeated, first_repeat, hash_keys
from afresh.tables.text_columns import as_texts

texts = st.lists(st.text("abc", max_size=3), max_size=30)


@settings(deadline=None)
@given(texts, st.integers(1, 7))
def test_the_first_repeat_is_the_first_row_whose_key_stood_before(keys: list[str], size: int) -> None:
    batches = [as_texts(keys[start : start + size]) for start in range(0, len(keys) or 1, size)]
    expected = next(((key, keys.index(key), row) for row, key in enumerate(keys) if key in keys[:row]), None)
    suspects = find_repeated([hash_keys(batch) for batch in batches])
    assert (suspects.size > 0) == (expected is not None)
    assert first_repeat(batches, suspects) == expected


def test_hashes_that_collide_are_checked_on_the_keys() -> None:
    keys = as_texts(["a", "b", "c"])
    everyone = np.sort(np.array([hash("a"), hash("b"), hash("c")], dtype=np.int64))
    assert first_repeat([keys], everyone) is None


@settings(deadline=None)
@given(st.sampled_from(["weight", "update_cost", "max_frequency"]), st.data())
def test_one_slip_after_the_first_letter_is_seen_as_a_misspelling(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(name) - 2))
    letter = data.draw(st.sampled_from("abcxyz"))
    slips = [
        name[:place] + name[place + 1 :],
        name[:place] + letter + name[place:],
        name[:place] + letter + name[place + 1 :],
        name[:place] + name[place + 1] + name[place] + name[place + 2 :],
        name.upper(),
        name.replace("_", "-"),
    ]
    assert all(is_misspelling(slip, name) for slip in slips)
