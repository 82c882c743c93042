"""Which tuples hold which keywords, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.probes.keyword_index import index_corpus, index_relation, parse_keywords
from afresh.values.errors import InputError

TITLE = parse_keywords("title")
texts = st.lists(st.lists(st.sampled_from("vwxyz"), max_size=6).map(" ".join), min_size=1, max_size=12)


@given(
    local=texts, corpus=texts, sets=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1)
)
@settings(deadline=None)
def test_counts_are_those_of_a_loop(local: list[str], corpus: list[str], sets: list[set[int]]) -> None:
    relation = index_relation({"title": ["v w x y z", *local]}, [TITLE])
    server = index_corpus(relation, {"title": corpus}, [TITLE])
    padded = np.array([(*sorted(one), -1, -1)[:3] for one in sets])
    names = [word.text for word in relation.keywords]
    expected = [sum({names[i] for i in one} <= set(text.split()) for text in corpus) for one in sets]
    assert server.counts(padded).tolist() == expected
    owner, tuples = server.matches(padded)
    for one, place in zip(owner, tuples, strict=True):
        assert {names[i] for i in sets[one]} <= set(corpus[place].split())


def test_a_keyword_may_be_sought_in_one_attribute_or_in_any() -> None:
    both = {"title": ["smith on webs"], "author": ["Smith"]}
    attributes = [TITLE, parse_keywords("author:;")]
    assert [str(word) for word in index_relation(both, attributes).keywords] == [
        "title=smith",
        "title=webs",
        "author=smith",
    ]
    assert [str(word) for word in index_relation(both, attributes, scoped=False).keywords] == [
        "smith",
        "webs",
    ]


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="all of one length"):
        index_relation({"title": ["a"], "author": []}, [TITLE, parse_keywords("author:;")])
