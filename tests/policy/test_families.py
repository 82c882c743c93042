"""Names tell which items belong together."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.news_addresses import news

from afresh.policy.families import FEWEST_IN_DIRECTORY, families_of, number_labels


def test_names_tell_families() -> None:
    names = ["en/docs/a", "en/docs/b", "en/docs/c", "en/docs/d", "en/docs/sub/e", "de/docs/a", "zz"]
    words, folder, elsewhere = families_of(names).T
    assert set(words) == {-1}
    assert np.unique(folder[:5]).size == 1  # a small directory counts as part of the one above
    assert folder[6] == -1
    assert elsewhere[0] == elsewhere[5] >= 0
    assert number_labels([None, None]).tolist() == [-1, -1]


def directories(names: list[str]) -> list[str | None]:
    """Return the directories by their definition: those with too few items move up, all at the same time."""
    folders = [name.rpartition("/")[0] for name in names]
    while True:
        count = Counter(folders)
        raised = [
            folder if count[folder] >= FEWEST_IN_DIRECTORY or "/" not in folder else folder.rpartition("/")[0]
            for folder in folders
        ]
        if raised == folders:
            return [folder or None for folder in folders]
        folders = raised


@given(st.lists(st.text("a/b", max_size=9), min_size=1, max_size=40))
def test_directories_and_paths_are_those_of_their_definitions(names: list[str]) -> None:
    _, folder, elsewhere = families_of(names).T
    assert folder.tolist() == number_labels(directories(names)).tolist()
    below = [name.partition("/")[2] if name.count("/") >= 2 else None for name in names]
    assert elsewhere.tolist() == number_labels(below).tolist()


if TYPE_CHECKING:
    from _typeshed import TraceFunction


def find_families_in_few_steps(names: list[str]) -> None:
    """Find families; fail if Python's interpreter takes more than 40 steps for each character.

    A cost that grows with the square of the names' length or number takes hundreds or thousands."""
    left = 40 * sum(map(len, names))

    def step(frame: FrameType, _event: str, _given: object) -> TraceFunction:
        nonlocal left
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        left -= 1
        assert left > 0, "too many steps"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        families_of(names)
    finally:
        sys.settrace(before)


def test_families_of_many_addresses_cost_little_more_than_reading_them() -> None:
    """Memory shows what is kept for every name, steps show how often it is gone through."""
    names = news(10_000)
    assert {len(name) for name in names} == {152}
    tracemalloc.start()
    families_of(names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * len(names)  # 100 MB for 200,000; all beginnings of each name took twenty times that
    find_families_in_few_steps(names[:4_000])  # six of the 40 steps, when this was written


def test_long_keys_cost_in_proportion_to_their_length() -> None:
    deep = ["https://a.test/" + "d/" * 1_000 + f"{number}/{number}" for number in range(60)]
    wordy = ["https://a.test/" + "w-" * 1_000 + f"{number}" for number in range(60)]
    for names in (deep, wordy):
        tracemalloc.start()
        families_of(names)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * sum(map(len, names))
        find_families_in_few_steps(names)  # 13 of the 40 steps for the deep ones
