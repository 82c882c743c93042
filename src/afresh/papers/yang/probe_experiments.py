"""Yang et al. 2010, §5.3, Figures 3 to 5: coverage and speedup of GreedyProbes by size of the keyword pool.

The experiments use given records instead of Google Scholar and Amazon: papers of seven topics, selected by
words of their titles; papers of one circle of authors; films of 200 directors. The server has all records
(for films a random 58 % of them). The proxy is a collection from which the number of results is estimated. It
has a random 1/4.6 of the server's records (for films all records). These are the proportions of the paper.

The coverage ratio Σ_q E[coverage(q)]/|L| (§5.1), for probes q and the relation L of |L| records (tuples),
counts a record once for every probe that covers it, and may exceed 1. Therefore the share of distinct records
is computed too. The paper defines the speedup ratio as requests per record, but plots records per request,
which is what is computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from afresh.papers.report import PaperFigure
from afresh.plots.panels import Panel, Series
from afresh.probes.candidates import ExactTotals, find_candidates, request_counts
from afresh.probes.cover import best_cover
from afresh.probes.greedy_probes import METHODS, Probe, greedy_probes
from afresh.probes.keyword_index import KeywordAttribute, index_corpus, index_relation, parse_keywords
from afresh.values.arrays import Float64s, Ints


@dataclass(frozen=True, slots=True, eq=False)
class SearchRecords:
    """All records of a server: papers (title, authors) or movies (title, director, cast)."""

    name: str
    kind: Literal["papers", "movies"]
    texts: Mapping[str, Sequence[str]]

    def rows(self, places: Sequence[int]) -> dict[str, list[str]]:
        """Return the records at these positions.

        >>> SearchRecords("made", "papers", {"title": ["a", "b"], "authors": ["x", "y"]}).rows([1])
        {'title': ['b'], 'authors': ['y']}
        """
        return {name: [column[place] for place in places] for name, column in self.texts.items()}

    @property
    def count(self) -> int:
        return len(self.texts["title"])


POOLS = (1, 2, 5, 10, 20, 50, 100)
PAGE_SIZE = 10
PAPER_SCALE, MOVIE_SCALE = 4.6, 0.58
TOPICS = ("summarization", "coreference", "sentiment", "parsing", "dialogue", "paraphrase", "transliteration")
_TOPIC_PAPERS, _CIRCLE_PAPERS, _FILMS = 671, 1500, 1000
_SEED = 671


@dataclass(frozen=True, slots=True, eq=False)
class _Experiment:
    """The texts of the relation, the server and the proxy, and the columns from which keywords are taken."""

    title: str
    local: dict[str, list[str]]
    server: dict[str, list[str]]
    proxy: dict[str, list[str]]
    scale: float  # results of a query at the server per result in the proxy
    attributes: tuple[KeywordAttribute, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """The probes of one method on one column, and their quality, for each size of the keyword pool."""

    label: str
    quality: tuple[ProbeQuality, ...]
    probes: tuple[tuple[Probe, ...], ...]


def figures(records: SearchRecords) -> tuple[PaperFigure, ...]:
    """Return Figures 3 and 4 for papers, or Figure 5 for films."""
    if records.kind == "movies":
        return (_figure("Figure 5", records, _film_experiment(records)),)
    return (
        _figure("Figure 3", records, _topic_experiment(records)),
        _figure("Figure 4", records, _circle_experiment(records)),
    )


def _topic_experiment(records: SearchRecords) -> _Experiment:
    each = -(-_TOPIC_PAPERS // len(TOPICS))
    places: dict[int, None] = {}
    for topic in TOPICS:
        found = [place for place, title in enumerate(records.texts["title"]) if topic in title.casefold()]
        places.update(dict.fromkeys(found[:: max(1, len(found) // each)][:each]))
    return _paper_experiment("papers of seven topics", records, sorted(places))


def _circle_experiment(records: SearchRecords) -> _Experiment:
    """Return the experiment with papers of the most prolific author and co-authors.
    They replace the papers of an institution, which the paper uses."""
    names = [{name.strip() for name in text.split(";") if name.strip()} for text in records.texts["authors"]]
    prolific = Counter(name for row in names for name in row).most_common(1)
    head = prolific[0][0] if prolific else ""
    circle = Counter(name for row in names if head in row for name in row)
    places: dict[int, None] = {}
    for name, _ in circle.most_common():
        if len(places) >= _CIRCLE_PAPERS:
            break
        places.update(dict.fromkeys(place for place, row in enumerate(names) if name in row))
    return _paper_experiment("papers of one circle of authors", records, sorted(places)[:_CIRCLE_PAPERS])


def _paper_experiment(title: str, records: SearchRecords, places: Sequence[int]) -> _Experiment:
    rng = np.random.default_rng(_SEED)
    sample = np.flatnonzero(rng.random(records.count) < 1 / PAPER_SCALE).tolist()
    return _Experiment(
        title,
        records.rows(places),
        records.rows(range(records.count)),
        records.rows(sample),
        PAPER_SCALE,
        (parse_keywords("authors:;"), parse_keywords("title")),
    )


def _film_experiment(records: SearchRecords) -> _Experiment:
    rng = np.random.default_rng(_SEED)
    shop = np.flatnonzero(rng.random(records.count) < MOVIE_SCALE)
    directors = Counter(records.texts["director"][place] for place in shop.tolist())
    wanted = {name for name, _ in directors.most_common(200) if name}
    places = [place for place in shop.tolist() if records.texts["director"][place] in wanted][:_FILMS]
    return _Experiment(
        "films of the most prolific directors",
        records.rows(places),
        records.rows(shop.tolist()),
        records.rows(range(records.count)),
        MOVIE_SCALE,
        (parse_keywords("title"), parse_keywords("director:;"), parse_keywords("cast:;")),
    )


def _figure(name: str, records: SearchRecords, experiment: _Experiment) -> PaperFigure:
    tuples = len(experiment.local["title"])
    runs = [_measure(experiment, one, method) for one in experiment.attributes for method in METHODS]
    best = max(runs, key=lambda run: max(q.distinct_ratio * q.speedup_ratio for q in run.quality))
    place = int(np.argmax([q.distinct_ratio * q.speedup_ratio for q in best.quality]))
    ours = tuples / _fewest_requests(experiment)
    course = _covered(best.probes[place], tuples)
    growth = Series("", np.arange(float(len(course))), np.array(course))
    pools = np.array(POOLS, dtype=np.float64)
    coverage, speedups = (
        [Series(run.label, pools, np.array([getattr(one, ratio) for one in run.quality])) for run in runs]
        for ratio in ("coverage_ratio", "speedup_ratio")
    )
    speedups.append(Series("ours, all attributes", pools, np.full(len(pools), ours), "dashed"))
    return PaperFigure.of(
        f"{name}, {records.name}",
        f"probes for {experiment.title}",
        "title words want a larger pool, whole values do not mind; Method 2 covers less; growth slows down.",
        f"{tuples} tuples against {len(experiment.server['title'])}. Best of the paper's: {best.label}, "
        f"k = {POOLS[place]}, {best.quality[place].speedup_ratio:.2f} tuples per request at "
        f"{best.quality[place].distinct_ratio:.0%} covered; ours {ours:.2f} at 100%.",
        Panel("Coverage", "keyword pool k", "coverage ratio", tuple(coverage), log_x=True),
        Panel("Speedup", "keyword pool k", "tuples per request", tuple(speedups), log_x=True),
        Panel("Growth", "queries sent", "share covered", (growth,)),
    )


def _covered(probes: Sequence[Probe], tuples: int) -> list[float]:
    """Return the expected share of covered records before the first probe and after each probe."""
    missed, course = np.ones(tuples), [0.0]
    for probe in probes:
        missed[probe.tuples] *= 1.0 - probe.expected / max(len(probe.tuples), 1)
        course.append(float((1.0 - missed).sum()) / max(tuples, 1))
    return course


def _measure(experiment: _Experiment, attribute: KeywordAttribute, method: int) -> _Measured:
    relation = index_relation(experiment.local, [attribute])
    proxy = index_corpus(relation, experiment.proxy, [attribute])

    def totals(sets: Ints) -> Float64s:
        """Return the paper's estimate, scale times the results in the proxy; at least the local results."""
        most = np.maximum(experiment.scale * proxy.counts(sets), relation.counts(sets))
        return np.asarray(most, dtype=np.float64)

    runs = tuple(greedy_probes(relation, totals, PAGE_SIZE, method=method, pool=pool) for pool in POOLS)
    quality = tuple(quality_of(run, relation.tuples) for run in runs)
    return _Measured(f"Method {method} on {attribute.name}", quality, runs)


def _fewest_requests(experiment: _Experiment) -> float:
    relation = index_relation(experiment.local, experiment.attributes)
    server = index_corpus(relation, experiment.server, experiment.attributes)
    found = find_candidates(relation, ExactTotals(server), PAGE_SIZE)
    every = np.ones(relation.tuples, dtype=np.bool_)
    return best_cover(found.tuples, request_counts(found.totals, PAGE_SIZE), every).requests


@dataclass(frozen=True, slots=True)
class ProbeQuality:
    """The paper's measures of a set of probes; ``distinct_ratio`` counts each covered record once."""

    coverage_ratio: float
    distinct_ratio: float
    speedup_ratio: float
    requests: float


def quality_of(probes: Sequence[Probe], tuples: int) -> ProbeQuality:
    """Return the quality of ``probes`` on a relation of ``tuples`` records.
    A probe q covers each record that it matches with probability p_q, the expected number of records that it
    returns over the number that it matches. So a record is covered with probability 1 − Π_q (1 − p_q).

    >>> twice = Probe((0,), np.array([0, 1]), np.array([0, 1]), 20.0, 1.0, 1.0)  # gets the first of two pages
    >>> quality_of([twice], 4)
    ProbeQuality(coverage_ratio=0.25, distinct_ratio=0.25, speedup_ratio=1.0, requests=1.0)
    """
    share, requests = _covered(probes, tuples)[-1], float(sum(probe.requests for probe in probes))
    covered = float(sum(probe.expected for probe in probes))
    return ProbeQuality(covered / max(tuples, 1), share, share * tuples / max(requests, 1.0), requests)
