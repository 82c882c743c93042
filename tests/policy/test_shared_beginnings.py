"""The longest shared beginnings are those that a search finds, at the cost of reading the names."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from afresh.policy.shared_beginnings import LEAST_LETTERS, MOST_WITH_WORDS, common_length, shared_beginnings

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]")

# Few different characters make names that share much, and words that end where others go on.
names_that_share = st.sampled_from(["aAB-", "GLmM1", "XYz-~", "a", "é٣a"]).flatmap(
    lambda letters: st.lists(st.text(letters, max_size=9), max_size=30)
)


def search_all(names: list[str]) -> list[tuple[str, list[int]]]:
    """Return the same by counting every beginning of every name."""
    beginnings = [
        ["".join(words[: end + 1]) for end in range(len(words))] for words in map(WORDS.findall, names)
    ]
    count = Counter(beginning for own in beginnings for beginning in own)
    families: dict[str, list[int]] = {}
    for row, own in enumerate(beginnings):
        good = [one for one in own if len(one) >= LEAST_LETTERS and 2 <= count[one] <= MOST_WITH_WORDS]
        if good:
            families.setdefault(good[-1], []).append(row)
    return sorted((beginning, rows) for beginning, rows in families.items() if len(rows) > 1)


@given(names_that_share)
@example(["XYabc-1", "XY-", "XYabc-2", "XY~", "XYabcd"])
@example([f"page-{number}" for number in range(MOST_WITH_WORDS + 1)])
@example(["page-1", "page-1", "page-2"])
def test_it_finds_what_a_search_through_all_beginnings_finds(names: list[str]) -> None:
    assert sorted(shared_beginnings(names)) == search_all(names)


@given(st.text("aé😀", max_size=6), st.text("aé😀", max_size=6))
def test_characters_in_common(one: str, other: str) -> None:
    common = common_length(one, other)
    assert one[:common] == other[:common]
    assert common == min(len(one), len(other)) or one[common] != other[common]


def test_long_names_with_many_words_take_memory_in_proportion_to_their_length() -> None:
    names = [f"{'a-' * 3_000}{number}" for number in range(20)]
    tracemalloc.start()
    found = list(shared_beginnings(names))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(len(beginning), len(rows)) for beginning, rows in found] == [(6_000, 20)]
    # The beginnings of one name, if each were a text, would be 18 MB.
    assert peak < 40 * sum(map(len, names))
