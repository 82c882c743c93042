"""Keyword probes: requests to cover a relation against rivals, and the time and memory of planning.

10,000 papers of some authors against a server of 110,000. ``AFRESH_DATA`` may name a folder with
``papers*.csv.gz`` (title, authors): then its records are the server, otherwise they are made up. Rivals:
greedy by new records per request with look-ups as the last resort, over single keywords and over sets of up
to three (the better counts); GreedyProbes as published, reading all pages; looking up one by one. CPU
seconds, so that neighbours on a busy machine do not count.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pyarrow import csv

from afresh.papers.yang.probe_experiments import quality_of
from afresh.probes.campaign import Campaign
from afresh.probes.candidates import Candidates, ExactTotals, find_candidates, request_counts
from afresh.probes.cover import greedy_cover
from afresh.probes.greedy_probes import greedy_probes
from afresh.probes.keyword_index import KeywordIndex, index_corpus, index_relation, parse_keywords
from afresh.probes.rounds import IndexServer, run_campaign
from afresh.values.arrays import Ints
from bench.rows import Row

PAGE = 10
ATTRIBUTES = (parse_keywords("authors:;"), parse_keywords("title"))


def rows(*, quick: bool) -> list[Row]:
    """Measure the requests, and then the speed of planning."""
    folder = os.environ.get("AFRESH_DATA")
    texts = _read(Path(folder)) if folder and not quick else _made(5_000 if quick else 110_000)
    own = _papers_of_some(texts["authors"], 500 if quick else 10_000)
    keys = [str(place) for place in range(len(texts["title"]))]
    relation = index_relation({name: [column[i] for i in own] for name, column in texts.items()}, ATTRIBUTES)
    server = index_corpus(relation, texts, ATTRIBUTES)
    begin = time.process_time()
    found = find_candidates(relation, ExactTotals(server), PAGE)
    campaign = Campaign(found, PAGE, np.ones(relation.tuples))
    planning = time.process_time() - begin
    steps = run_campaign(campaign, IndexServer(server, keys, PAGE), [keys[i] for i in own])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    ours = len(steps)
    title = f"{relation.tuples} of {len(keys)}"
    strong = min(_greedy_requests(found, size) for size in (1, 3))
    return [
        Row(f"requests, {title}", ours, ""),
        Row("bound", campaign.bound, "", ratio=campaign.planned_requests / campaign.bound, at_most=1.02),
        Row("greedy by request", strong, "", ratio=ours / strong, at_most=1.0 if quick else 0.999),
        Row("one by one", relation.tuples, "", ratio=ours / relation.tuples, at_most=0.5),
        _published(relation, server, ours, quick),
        Row("planning", planning, "s", at_most=10.0),
        Row("memory at most", peak, "GB", at_most=None if quick else 2.0),
        *_laziness(found, quick),
    ]


def _greedy_requests(found: Candidates, size: int) -> float:
    """Cover the relation greedily by sets of at most ``size`` keywords, and by look-ups for the rest."""
    some = found.take(np.flatnonzero((found.sets >= 0).sum(axis=1) <= size))
    costs = request_counts(some.totals, PAGE)
    chosen = greedy_cover(some.tuples, costs)
    covered = np.unique(some.tuples.take(chosen).members).size
    return float(costs[chosen].sum()) + found.tuples.width - covered


def _published(relation: KeywordIndex, server: KeywordIndex, ours: int, quick: bool) -> Row:
    probes = greedy_probes(relation, ExactTotals(server), PAGE, pool=10 if quick else 50)
    requests = quality_of(probes, relation.tuples).requests
    return Row("GreedyProbes as published", requests, "", ratio=ours / requests, at_most=0.9)


def _laziness(found: Candidates, quick: bool) -> list[Row]:
    """Compare the lazy greedy with the plain one: same choice, far fewer queries evaluated."""
    costs = request_counts(found.totals, PAGE)
    begin = time.process_time()
    lazy = greedy_cover(found.tuples, costs)
    middle = time.process_time()
    plain = _plain(found, costs)
    spent = time.process_time() - middle
    speed = spent / (middle - begin)
    return [
        Row("lazy greedy differs from plain", float(lazy.tolist() != plain), "", at_most=0.0),
        Row("plain greedy, in whole arrays", spent, "s", ratio=speed, at_least=None if quick else 1.5),
    ]


def _plain(found: Candidates, costs: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    left = np.ones(found.tuples.width)
    chosen: list[int] = []
    while True:
        gains = found.tuples.sums(left)
        scores = np.where(gains > costs, gains / costs, 0.0)
        best = int(np.argmax(scores))
        if scores[best] <= 0:
            return chosen
        chosen.append(best)
        left[found.tuples.row(best)] = 0.0


def _papers_of_some(authors: Sequence[str], count: int) -> list[int]:
    """Return all papers of authors drawn at random, until there are ``count``."""
    papers: dict[str, list[int]] = {}
    for place, text in enumerate(authors):
        for name in dict.fromkeys(part.strip() for part in text.split(";")):  # in the same order every time
            papers.setdefault(name, []).append(place)
    names = [name for name, places in papers.items() if name and len(places) >= 5]
    own: set[int] = set()
    for name in np.random.default_rng(0).permutation(names).tolist():
        if len(own) >= count:
            break
        own.update(papers[name])
    return sorted(own)


def _read(folder: Path) -> Mapping[str, Sequence[str]]:
    table = csv.read_csv(next(folder.glob("papers*.csv.gz")))
    return {name: [text or "" for text in table[name].to_pylist()] for name in ("title", "authors")}


def _made(records: int) -> Mapping[str, Sequence[str]]:
    """Make papers with skewed distributions of words and authors."""
    rng = np.random.default_rng(1)
    words = _skewed(rng, 20_000, 8 * records).reshape(records, 8)
    people = _skewed(rng, records // 2, 3 * records).reshape(records, 3)
    titles = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    return {"title": titles, "authors": [";".join(f"a{name}" for name in row) for row in people.tolist()]}


def _skewed(rng: np.random.Generator, kinds: int, count: int) -> Ints:
    weight = np.cumsum(1.0 / (10.0 + np.arange(kinds)))
    return np.asarray(np.searchsorted(weight, rng.random(count) * weight[-1]), dtype=np.int64)
