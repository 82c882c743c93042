"""The paper's algorithm: step by step as written, its stopping rules, the covering program behind it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from tests.probes.test_cover import exact
from tests.probes.worlds import make_world

from afresh.papers.yang.probe_experiments import quality_of
from afresh.probes.candidates import ExactTotals
from afresh.probes.greedy_probes import Probe, greedy_probes
from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.rounds import IndexServer, run_probes
from afresh.values.errors import UsageError


def holding(index: KeywordIndex, words: tuple[int, ...]) -> set[int]:
    return set.intersection(*(set(index.by_keyword.row(word).tolist()) for word in words))


def as_written(relation: KeywordIndex, server: KeywordIndex, pool: int, worth: list[float]) -> list[float]:
    """Algorithm 2 with loops and sets: the efficiency of each query chosen."""
    uncovered, efficiencies = set(range(relation.tuples)), []
    while uncovered:
        bag = Counter(word for r in uncovered for word in relation.by_tuple.row(r).tolist())
        words = sorted(sorted(bag), key=lambda word: -bag[word])[:pool]
        queries = [(word,) for word in words] + [tuple(sorted(pair)) for pair in combinations(words, 2)]
        scores = {}
        for query in queries:
            new = holding(relation, query) & uncovered
            if new:
                scores[query] = sum(worth[r] for r in new) / len(holding(server, query))
        best = max(scores.values())
        chosen = next(query for query, score in scores.items() if np.isclose(score, best, rtol=1e-12))
        efficiencies.append(best)
        uncovered -= holding(relation, chosen)
    return efficiencies


@pytest.mark.parametrize("pool", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_each_query_is_the_most_efficient(seed: int, pool: int) -> None:
    world = make_world(seed, records=120, tuples=30, words=25)
    worth = np.random.default_rng(seed).uniform(0.5, 2.0, world.relation.tuples)
    probes = greedy_probes(world.relation, ExactTotals(world.server), 5, pool=pool, values=worth)
    found = [worth[probe.new].sum() / probe.total for probe in probes]
    assert found == pytest.approx(as_written(world.relation, world.server, pool, worth.tolist()))
    for probe in probes:
        assert set(probe.tuples.tolist()) == holding(world.relation, probe.keywords)
        assert probe.requests == -(-probe.total // 5)
    covered = np.concatenate([probe.new for probe in probes])
    assert sorted(covered.tolist()) == list(range(world.relation.tuples))


def test_a_quota_stops_it_and_method_2_reads_one_page() -> None:
    world = make_world(1)
    probes = greedy_probes(world.relation, ExactTotals(world.server), 10, method=2, quota=3)
    assert len(probes) == 3
    for probe in probes:
        assert probe.requests == 1
        assert probe.expected == pytest.approx(min(1, 10 / probe.total) * len(probe.tuples))
    steps = run_probes(probes, IndexServer(world.server, world.server_keys, 10), world.keys, pages=1)
    assert len(steps) == 3


@pytest.mark.parametrize("seed", range(3))
def test_all_pages_bring_all_tuples(seed: int) -> None:
    world = make_world(seed)
    probes = greedy_probes(world.relation, ExactTotals(world.server), 10)
    server = IndexServer(world.server, world.server_keys, 10)
    steps = run_probes(probes, server, world.keys)
    quality = quality_of(probes, world.relation.tuples)
    assert sum(step.new for step in steps) == world.relation.tuples
    assert len(steps) == quality.requests
    assert quality.distinct_ratio == pytest.approx(1.0)
    assert quality.coverage_ratio >= 1.0
    assert quality.speedup_ratio == pytest.approx(world.relation.tuples / len(steps))


@pytest.mark.parametrize("seed", range(4))
def test_it_approximates_the_covering_program(seed: int) -> None:
    """§3.3: Σ|R_S(q)| is at least the exact minimum, and within the logarithm that greedy covers promise."""
    world = make_world(seed, records=100, tuples=14, words=20)
    relation = world.relation
    queries = {
        words
        for r in range(relation.tuples)
        for size in (1, 2)
        for words in combinations(relation.by_tuple.row(r).tolist(), size)
    }
    rows = [sorted(holding(relation, words)) for words in sorted(queries)]
    sizes = np.array([len(holding(world.server, words)) for words in sorted(queries)], dtype=np.float64)
    # A tuple's own look-up would transmit one tuple: the paper's program has none, so it is priced out.
    least = exact_without_look_ups(rows, sizes, relation.tuples)
    probes = greedy_probes(relation, ExactTotals(world.server), 10, pool=len(relation.keywords))
    sent = sum(probe.total for probe in probes)
    assert least <= sent <= least * (1 + np.log(relation.tuples))


def exact_without_look_ups(rows: list[list[int]], sizes: npt.NDArray[np.float64], tuples: int) -> float:
    # Costs in units in which a look-up is dearer than everything together.
    dear = float(sizes.sum()) + 1.0
    return exact(rows, sizes / dear, tuples) * dear


def test_other_methods_are_refused() -> None:
    world = make_world(0)
    with pytest.raises(UsageError, match="must be 1 "):
        greedy_probes(world.relation, ExactTotals(world.server), 10, method=3)


def test_quality_of_nothing() -> None:
    none: tuple[Probe, ...] = ()
    assert quality_of(none, 5).speedup_ratio == 0.0
