"""Look-ups of several keys compete with queries: the fewest requests, with a bound that includes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from afresh.probes.campaign import Campaign
from afresh.probes.candidates import Candidates, ExactTotals, find_candidates
from afresh.probes.cover import best_cover
from afresh.probes.keyword_index import KeywordIndex, index_relation, parse_keywords
from afresh.probes.page_plan import BulkLookUp, plan_pages
from afresh.probes.postings import Postings
from afresh.probes.rounds import IndexServer, ProbeAnswer, run_campaign


def random_queries(rng: np.random.Generator, records: int, queries: int) -> tuple[Postings, np.ndarray]:
    rows = [np.flatnonzero(rng.random(records) < 0.5).tolist() for _ in range(queries)]
    return Postings.of_rows(rows, records), rng.integers(1, 4, queries).astype(np.float64)


def fewest(queries: Postings, costs: np.ndarray, records: int, bulk: int) -> float:
    """The least number of requests, by trying every choice of queries."""
    best = math.inf
    for size in range(len(costs) + 1):
        for chosen in combinations(range(len(costs)), size):
            covered = set(queries.take(np.array(chosen, dtype=np.int64)).members.tolist())
            requests = costs[list(chosen)].sum() + math.ceil((records - len(covered)) / bulk)
            best = min(best, float(requests))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_cover_is_the_best_of_all_and_its_bound_is_below_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records, bulk = 14, int(rng.integers(2, 5))
    queries, costs = random_queries(rng, records, 6)
    cover = best_cover(queries, costs, np.ones(records, dtype=np.bool_), bulk=bulk)
    best = fewest(queries, costs, records, bulk)
    assert cover.bound <= best == cover.requests


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_a_quota_holds_for_every_plan_of_whole_queries_and_look_ups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records, bulk, quota = 12, 3, 2
    queries, _ = random_queries(rng, records, 4)
    values = rng.random(records)
    totals = queries.sizes.astype(np.float64)  # each query is one page
    found = Candidates(np.arange(4)[:, None], queries, totals, bulk)
    plan = plan_pages(found, 12, values, quota)
    best = 0.0
    for size in range(quota + 1):
        for chosen in combinations(range(4), size):
            covered = queries.take(np.array(chosen, dtype=np.int64)).members
            left = np.delete(values, np.unique(covered))
            named = np.sort(left)[::-1][: (quota - size) * bulk]
            best = max(best, float(values.sum() - left.sum() + named.sum()))
    assert plan.bound >= best - 1e-9
    assert plan.gains.sum() >= (1 - 1 / math.e) * best


def papers(count: int, authors: int) -> tuple[KeywordIndex, list[str], Candidates, int]:
    texts = {"a": [f"author{number % authors}" for number in range(count)]}
    index = index_relation(texts, [parse_keywords("a")])
    keys = [f"p{number}" for number in range(count)]
    return index, keys, find_candidates(index, ExactTotals(index), 10, bulk=100), count


def test_606_records_at_100_each_are_seven_requests_and_no_plan_has_fewer() -> None:
    index, keys, found, count = papers(606, 60)
    campaign = Campaign(found, 10, np.ones(count))
    steps = run_campaign(campaign, IndexServer(index, keys, 10), keys)
    assert [step.named for step in steps] == [100] * 6 + [6]
    assert sum(step.new for step in steps) == 606
    assert campaign.bound == campaign.planned_requests == 7


def test_a_query_that_brings_more_than_a_bulk_is_still_sent() -> None:
    texts = {"a": ["many"] * 300 + [f"x{number}" for number in range(50)]}
    index = index_relation(texts, [parse_keywords("a")])
    keys = [f"p{number}" for number in range(350)]
    found = find_candidates(index, ExactTotals(index), 300, bulk=50)
    campaign = Campaign(found, 300, np.ones(350))
    steps = run_campaign(campaign, IndexServer(index, keys, 300), keys)
    assert [(bool(step.keywords), step.new) for step in steps] == [(True, 300), (False, 50)]
    assert campaign.bound == 2


class Stingy(IndexServer):
    """Gives at most 25 records for many keys; says how many there are, or not."""

    says_total = True
    lost = frozenset({"p3", "p7"})

    def look_up_many(self, keys: Sequence[str]) -> ProbeAnswer:
        answer = super().look_up_many([key for key in keys if key not in self.lost])
        total = answer.total if self.says_total else None
        return ProbeAnswer(total, answer.keys[:25])


class Silent(Stingy):
    says_total = False


@pytest.mark.parametrize(("kind", "most"), [(Stingy, 15), (Silent, 300)])
def test_a_server_that_gives_fewer_than_asked_for_is_asked_for_fewer(kind: type[Stingy], most: int) -> None:
    index, keys, found, count = papers(300, 60)
    campaign = Campaign(found, 10, np.ones(count))
    steps = run_campaign(campaign, kind(index, keys, 10), keys)
    assert sum(step.new for step in steps) == 298
    assert {keys[place] for place in np.flatnonzero(campaign.missing)} == Stingy.lost
    assert len(steps) <= most


def test_with_a_quota_the_most_valuable_records_are_named_first() -> None:
    index, keys, found, count = papers(300, 60)
    values = np.arange(count, dtype=np.float64)
    campaign = Campaign(found, 10, values, quota=1)
    request = campaign.next_request()
    assert isinstance(request, BulkLookUp)
    assert sorted(request.tuples) == list(range(200, 300))
    assert campaign.bound == values[200:].sum()
    assert len(run_campaign(campaign, IndexServer(index, keys, 10), keys)) == 1
