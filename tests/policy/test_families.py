"""Names tell which items belong together."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b

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


def processor_s(work: Callable[[], object]) -> float:
    start_s = time.process_time()
    work()
    return time.process_time() - start_s


def read(names: list[str]) -> list[bytes]:
    """Read every character once."""
    return [blake2b(name.encode()).digest() for name in names]


def test_families_of_many_addresses_cost_little_more_than_reading_them() -> None:
    names = news(10_000)
    assert {len(name) for name in names} == {152}
    tracemalloc.start()
    families_of(names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * len(names)  # 100 MB for 200,000; all beginnings of each name took twenty times that
    work_s, reading_s = (
        min(processor_s(work) for _ in range(3)) for work in (lambda: families_of(names), lambda: read(names))
    )
    assert work_s < 30 * reading_s


def test_long_keys_cost_in_proportion_to_their_length() -> None:
    deep = ["https://a.test/" + "d/" * 1_000 + f"{number}/{number}" for number in range(60)]
    wordy = ["https://a.test/" + "w-" * 1_000 + f"{number}" for number in range(60)]
    for names in (deep, wordy):
        tracemalloc.start()
        families_of(names)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * sum(map(len, names))
