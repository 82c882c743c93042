"""Splitters and the index: against sets and loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.probes.keyword_index import index_corpus, index_relation
from afresh.probes.postings import Postings, SortedSet
from afresh.probes.splitters import ValueSplitter, WordSplitter, parse_keywords
from afresh.values.errors import InputError, UsageError

TITLE = parse_keywords("title")
texts = st.lists(st.lists(st.sampled_from("vwxyz"), max_size=6).map(" ".join), min_size=1, max_size=12)


@given(
    local=texts, corpus=texts, sets=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1)
)
@settings(max_examples=60, deadline=None)
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


@given(
    members=st.lists(st.integers(0, 2**60), unique=True),
    asked=st.lists(st.integers(0, 2**60), max_size=30),
)
@settings(max_examples=50, deadline=None)
def test_members_are_found_and_nothing_else(members: list[int], asked: list[int]) -> None:
    found = SortedSet(np.array(sorted(members), dtype=np.int64))
    every = np.array([*asked, *members], dtype=np.int64)
    assert found(every).tolist() == [number in set(members) for number in every.tolist()]


@given(rows=st.lists(st.sets(st.integers(0, 6)).map(sorted), max_size=8))
@settings(max_examples=50, deadline=None)
def test_postings_turn_and_sum(rows: list[list[int]]) -> None:
    postings = Postings.of_rows(rows, 7)
    assert [postings.row(i).tolist() for i in range(len(rows))] == rows
    back = postings.transposed().transposed()
    assert [back.row(i).tolist() for i in range(len(rows))] == rows
    values = np.arange(7.0) ** 2
    assert postings.sums(values) == pytest.approx([sum(values[j] for j in row) for row in rows])


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


def test_words_and_values() -> None:
    assert WordSplitter()("Über die Über-Suche: it IS the e-mail") == ["über", "die", "suche", "e", "mail"]
    assert ValueSplitter("|")(" A  b |a b|| c") == ["a b", "c"]


@pytest.mark.parametrize("wrong", ["", ":;", "title:"])
def test_a_wrong_column_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="give a column"):
        parse_keywords(wrong)


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="all of one length"):
        index_relation({"title": ["a"], "author": []}, [TITLE, parse_keywords("author:;")])
