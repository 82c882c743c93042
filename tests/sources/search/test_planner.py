"""The planner of a search source: the first look at all records, however wrong the estimated totals are."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.probes.keyword_index import index_relation, parse_keywords
from afresh.sources.search.planner import PlannedRequest, Planner
from afresh.sources.search.totals import LearnedTotals
from afresh.values.arrays import Ints

PAGE = 50


class MisleadingServer:
    """Two records share each word. Of every five words, one is what it seems; the others have a thousand
    results, and none of ours among the first. With a fifth that are right, the estimates stay too low."""

    def __init__(self, words: int) -> None:
        self.texts = [f"w{place // 2}" for place in range(2 * words)]
        self.requests = 0

    def answer(self, ask: PlannedRequest, word: str) -> tuple[list[str], Ints, int | None]:
        self.requests += 1
        if not ask.words:
            return [f"r{row}" for row in ask.rows], np.array(ask.rows, dtype=np.int64), None
        number = int(word.removeprefix("w"))
        if number % 5 == 0:
            rows = np.array([2 * number, 2 * number + 1])
            return [f"r{row}" for row in rows], rows, 2
        others = [f"other {number} {ask.page} {place}" for place in range(PAGE)]
        return others, np.empty(0, dtype=np.int64), 1000


@pytest.mark.parametrize("at_once", [1, 5])
def test_a_first_fill_takes_hardly_more_requests_than_look_ups(at_once: int) -> None:
    server = MisleadingServer(200)
    index = index_relation({"t": server.texts}, [parse_keywords("t")])
    planner = Planner(index, index, PAGE, keys_at_once=at_once)
    unseen = np.ones(len(server.texts))
    while unseen.any():
        if planner.is_outdated:
            planner.search_candidates()
        ask = planner.best(unseen)
        assert ask is not None
        word = index.keywords[ask.words[0]].text if ask.words else ""
        keys, rows, total = server.answer(ask, word)
        planner.learn(ask, keys, rows, total)
        unseen[rows] = 0.0
    assert server.requests <= 1.05 * len(server.texts) / at_once + 3


def test_what_was_seen_in_an_earlier_run_is_no_first_fill() -> None:
    server = MisleadingServer(50)
    index = index_relation({"t": server.texts}, [parse_keywords("t")])
    planner = Planner(index, index, PAGE)
    planner.mark_seen(np.arange(len(server.texts)))
    values, asked = np.ones(len(server.texts)), []
    for _ in range(20):
        ask = planner.best(values)
        assert ask is not None
        asked.append(bool(ask.words))
        keys, rows, total = server.answer(ask, index.keywords[ask.words[0]].text if ask.words else "")
        planner.learn(ask, keys, rows, total)
        values[rows] = 0.0
    assert sum(asked) > 10  # queries go on: what they lose is no loss of a first fill


def test_a_server_that_searches_all_columns_gets_a_scale_for_each_column() -> None:
    texts = {"authors": [f"Ann A{n // 2}" for n in range(40)], "title": [f"web w{n // 4}" for n in range(40)]}
    index = index_relation(texts, [parse_keywords("authors:;"), parse_keywords("title")], scoped=False)
    totals = LearnedTotals(index, index)
    numbers = {keyword.text: number for number, keyword in enumerate(index.keywords)}
    for number in range(8):  # all papers of these authors are here, but few of those with these words
        totals.reported((numbers[f"ann a{number}"],), 2.0)
        totals.reported((numbers[f"w{number}"],), 400.0)
    times = {note.attribute: note.times for note in totals.notes()}
    assert times["authors"] < 1.5
    assert times["title"] > 30
    author, word = totals(np.array([[numbers["ann a19"]], [numbers["w9"]]]))
    assert author == 2.0
    assert word > 40.0
