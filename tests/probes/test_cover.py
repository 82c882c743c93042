"""Covers: against the whole-number program over every query, and bounds that hold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from tests.probes.worlds import World, make_world

from afresh.probes.candidates import ExactTotals, find_candidates, request_counts
from afresh.probes.cover import Cover, best_cover, greedy_cover
from afresh.probes.postings import Postings


def exact(rows: list[list[int]], costs: npt.NDArray[np.float64], tuples: int) -> float:
    """The least requests, by branching on everything."""
    matrix = np.zeros((tuples, len(rows) + tuples))
    for column, row in enumerate(rows):
        matrix[row, column] = 1
    matrix[:, len(rows) :] = np.eye(tuples)
    price = np.concatenate((costs, np.ones(tuples)))
    whole = np.ones(len(price), dtype=np.int64)
    found = milp(
        price, constraints=LinearConstraint(matrix, 1, np.inf), integrality=whole, bounds=Bounds(0, 1)
    )
    assert found.fun is not None
    return float(found.fun)


def assert_covers(cover: Cover, queries: Postings, costs: npt.NDArray[np.float64], wanted: set[int]) -> None:
    reached = set(queries.take(cover.queries).members.tolist()) | set(cover.look_ups.tolist())
    assert wanted <= reached
    assert cover.requests == costs[cover.queries].sum() + len(cover.look_ups)
    assert cover.bound <= cover.requests


instances = st.tuples(
    st.lists(st.sets(st.integers(0, 11), min_size=1).map(sorted), min_size=1, max_size=14),
    st.lists(st.integers(1, 4), min_size=14, max_size=14),
)


@given(given=instances)
@settings(deadline=None)
def test_the_cover_is_the_best_there_is(given: tuple[list[list[int]], list[int]]) -> None:
    rows, prices = given
    costs = np.array(prices[: len(rows)], dtype=np.float64)
    queries = Postings.of_rows(rows, 12)
    cover = best_cover(queries, costs, np.ones(12, dtype=np.bool_))
    assert_covers(cover, queries, costs, set(range(12)))
    least = exact(rows, costs, 12)
    assert cover.requests == pytest.approx(least)
    assert cover.bound <= least + 1e-6


@given(given=instances, wanted=st.sets(st.integers(0, 11)))
@settings(deadline=None)
def test_only_what_is_wanted_is_paid_for(given: tuple[list[list[int]], list[int]], wanted: set[int]) -> None:
    rows, prices = given
    costs = np.array(prices[: len(rows)], dtype=np.float64)
    flags = np.isin(np.arange(12), list(wanted))
    queries = Postings.of_rows(rows, 12)
    cover = best_cover(queries, costs, flags)
    assert_covers(cover, queries, costs, wanted)
    place = {tuple_: index for index, tuple_ in enumerate(sorted(wanted))}
    left = [[place[r] for r in row if r in wanted] for row in rows]
    assert cover.requests == pytest.approx(exact(left, costs, len(wanted)) if wanted else 0.0)


def every_query(world: World, page: int) -> tuple[list[list[int]], npt.NDArray[np.float64]]:
    """All sets of one to three keywords that a tuple holds."""
    found: set[tuple[int, ...]] = set()
    for row in range(world.relation.tuples):
        words = world.relation.by_tuple.row(row).tolist()
        for size in (1, 2, 3):
            found.update(combinations(words, size))
    sets = np.array([(*one, -1, -1)[:3] for one in sorted(found)])
    owner, tuples = world.relation.matches(sets)
    rows: list[list[int]] = [[] for _ in sets]
    for one, member in zip(owner.tolist(), tuples.tolist(), strict=True):
        rows[one].append(member)
    return rows, request_counts(world.server.counts(sets).astype(np.float64), page)


@pytest.mark.parametrize("seed", range(6))
def test_leaving_out_dominated_queries_loses_nothing(seed: int) -> None:
    world, page = make_world(seed, records=160, tuples=25, words=30), 5
    found = find_candidates(world.relation, ExactTotals(world.server), page)
    owner, tuples = world.relation.matches(found.sets)
    assert tuples.tolist() == found.tuples.members.tolist()
    assert owner.tolist() == found.tuples.row_ids().tolist()
    assert world.server.counts(found.sets).tolist() == found.totals.tolist()
    costs = request_counts(found.totals, page)
    cover = best_cover(found.tuples, costs, np.ones(world.relation.tuples, dtype=np.bool_))
    rows, prices = every_query(world, page)
    assert cover.requests == pytest.approx(exact(rows, prices, world.relation.tuples))


@pytest.mark.parametrize("seed", range(4))
def test_the_cover_beats_the_greedy_and_meets_its_bound(seed: int) -> None:
    world, page = make_world(seed, records=2000, tuples=400, words=300), 10
    found = find_candidates(world.relation, ExactTotals(world.server), page)
    costs = request_counts(found.totals, page)
    cover = best_cover(found.tuples, costs, np.ones(world.relation.tuples, dtype=np.bool_))
    chosen = greedy_cover(found.tuples, costs)
    left = world.relation.tuples - np.unique(found.tuples.take(chosen).members).size
    greedy = costs[chosen].sum() + left
    assert cover.requests < greedy
    assert cover.requests < world.relation.tuples / 2
    assert cover.bound >= 0.97 * cover.requests


def plain_greedy(queries: Postings, costs: npt.NDArray[np.float64]) -> list[int]:
    """Every query looked at every time."""
    worth = np.ones(queries.width)
    chosen: list[int] = []
    while True:
        best = (0.0, -1)
        for query in range(queries.height):
            left = worth[queries.row(query)]
            by_look_up = np.sort(left)[::-1][: int(costs[query])].sum()
            score = float(left.sum()) / costs[query]
            if left.sum() > by_look_up and score > best[0]:
                best = (score, query)
        if best[1] < 0:
            return chosen
        chosen.append(best[1])
        worth[queries.row(best[1])] = 0.0


@given(given=instances)
@settings(deadline=None)
def test_the_lazy_greedy_is_the_plain_greedy(given: tuple[list[list[int]], list[int]]) -> None:
    rows, prices = given
    costs = np.array(prices[: len(rows)], dtype=np.float64)
    queries = Postings.of_rows(rows, 12)
    assert greedy_cover(queries, costs).tolist() == plain_greedy(queries, costs)


def test_nothing_to_cover_costs_nothing() -> None:
    cover = best_cover(Postings.of_rows([[0, 1, 2]], 3), np.ones(1), np.zeros(3, dtype=np.bool_))
    assert (cover.requests, cover.bound, len(cover.queries)) == (0.0, 0.0, 0)


def test_a_query_dearer_than_its_records_is_left_however_its_price_rounds() -> None:
    # 7/25·25 > 7 in doubles: the look-ups are as good all the same.
    for records, cost in ((7, 25), (15, 29), (29, 35), (23, 41)):
        queries = Postings.of_rows([list(range(records))], width=60)
        assert greedy_cover(queries, np.array([float(cost)])).size == 0
