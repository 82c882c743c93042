"""Rounds against servers: honest ones, and ones that limit, lie, lose records and hold back totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.probes.worlds import ATTRIBUTES, World, make_world

from afresh.probes.campaign import Campaign
from afresh.probes.candidates import Candidates, ExactTotals, find_candidates
from afresh.probes.keyword_index import index_corpus
from afresh.probes.rounds import IndexServer, ProbeAnswer, ProbeStep, run_campaign
from afresh.sources.search.totals import LearnedTotals
from afresh.values.errors import UsageError

PAGE = 10


@cache  # read alone: a campaign keeps its own record of what is wanted
def large(seed: int) -> tuple[World, Candidates]:
    world = make_world(seed, records=1000, tuples=150, words=200)
    return world, find_candidates(world.relation, ExactTotals(world.server), PAGE)


def carried_out(
    world: World, found: Candidates, server: IndexServer, **options: object
) -> tuple[Campaign, tuple[ProbeStep, ...]]:
    campaign = Campaign(found, PAGE, np.ones(world.relation.tuples), **options)  # type: ignore[arg-type]
    return campaign, run_campaign(campaign, server, world.keys)


@pytest.mark.parametrize("seed", range(4))
def test_everything_is_covered_within_the_plan(seed: int) -> None:
    world, found = large(seed)
    campaign, steps = carried_out(world, found, IndexServer(world.server, world.server_keys, PAGE))
    assert sum(step.new for step in steps) == world.relation.tuples
    assert not campaign.wanted.any()
    assert not campaign.missing.any()
    assert len(steps) <= campaign.planned_requests
    assert campaign.bound <= campaign.planned_requests
    asked = [(step.keywords, step.key, step.page) for step in steps]
    assert len(set(asked)) == len(asked)


class Hostile(IndexServer):
    """Claims too much or too little, or nothing, and has lost some records."""

    def __init__(self, world: World, factor: float | None, lost: set[str]) -> None:
        super().__init__(world.server, world.server_keys, PAGE)
        self._factor, self._lost = factor, lost

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        answer = super().page(keywords, number)
        total = None if self._factor is None or answer.total is None else int(answer.total * self._factor)
        return ProbeAnswer(total, tuple(key for key in answer.keys if key not in self._lost))

    def look_up(self, key: str) -> ProbeAnswer:
        return super().look_up(key) if key not in self._lost else ProbeAnswer(0, ())


@pytest.mark.parametrize("factor", [None, 0.3, 1.0, 5.0])
def test_lies_and_losses_end_with_every_record_found_or_known_missing(factor: float | None) -> None:
    world, found = large(1)
    lost = set(world.keys[::7])
    campaign, steps = carried_out(world, found, Hostile(world, factor, lost))
    assert sum(step.new for step in steps) == len(world.keys) - len(lost)
    assert {world.keys[place] for place in np.flatnonzero(campaign.missing)} == lost
    assert len(steps) <= 3 * len(world.keys)


class Foreign(Hostile):
    """Nothing of ours is ever on a page."""

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        return replace(super().page(keywords, number), keys=("x",))


@pytest.mark.parametrize("factor", [None, 0.01, 1.0, 1e6])
@pytest.mark.parametrize("quota", [None, 40])
def test_what_estimates_lose_against_look_ups_is_bounded(factor: float | None, quota: int | None) -> None:
    world = make_world(3, records=2000, tuples=60, words=300)
    totals = LearnedTotals(world.relation, world.relation)
    found = find_candidates(world.relation, totals, PAGE)
    server = Foreign(world, factor, set())
    _, steps = carried_out(world, found, server, learned=totals, quota=quota)
    pages = sum(bool(step.keywords) for step in steps)
    assert 0 < pages <= 0.05 * (quota or len(world.keys)) + 3
    assert len(steps) == (quota or pages + len(world.keys))


def test_a_limit_of_results_is_kept_to() -> None:
    world, found = large(2)
    campaign, steps = carried_out(
        world, found, IndexServer(world.server, world.server_keys, PAGE, limit=20), limit=20
    )
    assert not campaign.missing.any()
    assert sum(step.new for step in steps) == world.relation.tuples
    assert max(step.page for step in steps) <= 2
    assert len(steps) <= campaign.planned_requests


@pytest.mark.parametrize("quota", [1, 7, 20])
def test_a_quota_buys_the_most_valuable_first(quota: int) -> None:
    world, found = large(3)
    server = IndexServer(world.server, world.server_keys, PAGE)
    campaign, steps = carried_out(world, found, server, quota=quota)
    brought = sum(step.new for step in steps)
    assert len(steps) == quota
    # The bound is on what can be expected: luck may add a little.
    assert 0.6 * campaign.bound - 3 <= brought <= 1.2 * campaign.bound + 3
    weights = np.where(np.arange(world.relation.tuples) == 5, 1000.0, 1.0)
    heavy = Campaign(found, PAGE, weights, quota=quota)
    run_campaign(heavy, server, world.keys)
    assert not heavy.wanted[5]


def test_a_proxy_is_nearly_as_good_as_knowing() -> None:
    world, exact = large(0)
    _, best = carried_out(world, exact, IndexServer(world.server, world.server_keys, PAGE))
    sample = np.flatnonzero(np.random.default_rng(1).random(len(world.server_keys)) < 0.25)
    texts = {"title": [""] * len(sample), "authors": [""] * len(sample)}
    for name in texts:
        for row, place in enumerate(sample.tolist()):
            words = [world.relation.keywords[word] for word in world.server.by_tuple.row(place).tolist()]
            joint = ";" if name == "authors" else " "
            texts[name][row] = joint.join(word.text for word in words if word.attribute == name)
    proxy = index_corpus(world.relation, texts, ATTRIBUTES)
    totals = LearnedTotals(world.relation, proxy)
    found = find_candidates(world.relation, totals, PAGE)
    campaign, steps = carried_out(
        world, found, IndexServer(world.server, world.server_keys, PAGE), learned=totals
    )
    assert not campaign.wanted.any()
    assert len(best) <= len(steps) <= 1.35 * len(best)


def test_records_without_keywords_are_looked_up() -> None:
    world, found = large(0)
    none = Candidates(found.sets[:0], found.tuples.take(np.empty(0, np.int64)), found.totals[:0])
    _, steps = carried_out(world, none, IndexServer(world.server, world.server_keys, PAGE))
    assert [step.key for step in steps] == world.keys


def test_a_page_of_nothing_is_refused() -> None:
    world, found = large(0)
    with pytest.raises(UsageError, match="page size 0"):
        Campaign(found, 0, np.ones(world.relation.tuples))
