"""The exact similarity is what sketches estimate."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.similarity import exact_similarity, similarity, sketch

WORDS = st.lists(st.sampled_from([f"word{i}" for i in range(40)]), max_size=80)


@given(WORDS, WORDS)
@settings(deadline=None, max_examples=40)
def test_sketches_estimate_the_exact_similarity(one: list[str], other: list[str]) -> None:
    first, second = " ".join(one).encode(), " ".join([*one[: len(one) // 2], *other]).encode()
    exact = exact_similarity(first, second)
    assert exact == exact_similarity(second, first)
    assert 0.0 <= exact <= 1.0
    if first and second:
        assert abs(similarity(sketch(first), sketch(second)) - exact) < 0.25  # eight standard deviations


def test_the_same_words_are_wholly_similar() -> None:
    assert exact_similarity(b"a b  c", b"a b c") == 1.0
    assert exact_similarity(b"", b"") == 1.0
    assert exact_similarity(b"", b"a") == 0.0
