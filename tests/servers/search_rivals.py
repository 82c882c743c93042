"""What others would do with the same requests to a search box: the rivals of Yang et al. 2010, §5.1.

Each is given what it could not know: true rates, the true totals, requests that take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from tests.servers.search_site import PAGE, Papers

from afresh.probes.candidates import ExactTotals
from afresh.probes.greedy_probes import greedy_probes
from afresh.probes.keyword_index import index_corpus, index_relation, parse_keywords

ATTRIBUTES = (parse_keywords("authors:;"), parse_keywords("title"))
STEP = 10  # requests of one step of the paper's experiment
Request = tuple[str, int]
"""A query and its page, or a key and 0."""


def naive(papers: Papers, own: Sequence[int], rate: float) -> Iterator[Request]:
    """Naive 1: one by one, in turn."""
    del papers, rate
    while True:
        yield from ((f"p{paper}", 0) for paper in own)


def naive_slow(papers: Papers, own: Sequence[int], rate: float) -> Iterator[Request]:
    """Naive 2: only those that change less than once in a step."""
    slow = [paper for paper in own if papers.rates[paper] * STEP / rate < 1]
    while True:
        yield from ((f"p{paper}", 0) for paper in slow)


def greedy(papers: Papers, own: Sequence[int], rate: float, *, method: int = 1) -> Iterator[Request]:
    """GreedyProbes: rounds of a step's queries by ½λt², each read to the end (Method 2: its first page)."""
    texts = {"authors": [papers.authors[at] for at in own], "title": [papers.titles[at] for at in own]}
    relation = index_relation(texts, ATTRIBUTES, scoped=True)
    whole = {"authors": papers.authors, "title": papers.titles}
    totals = ExactTotals(index_corpus(relation, whole, ATTRIBUTES, scoped=True))
    rates, seen, sent = papers.rates[list(own)], np.full(len(own), -60.0), 0
    while True:
        values = 0.5 * rates * np.square(sent / rate - seen)
        for probe in greedy_probes(relation, totals, PAGE, method=method, pool=50, quota=STEP, values=values):
            words = [relation.keywords[number] for number in probe.keywords]
            query = " ".join(f'{word.attribute}:"{word.text}"' for word in words)
            for page in range(1, int(probe.requests) + 1 if method == 1 else 2):
                yield query, page
                sent += 1
            seen[probe.tuples] = sent / rate


RIVALS: dict[str, Callable[[Papers, Sequence[int], float], Iterator[Request]]] = {
    "Naive 1": naive,
    "Naive 2": naive_slow,
    "GreedyProbes 1": greedy,
    "GreedyProbes 2": partial(greedy, method=2),
}
