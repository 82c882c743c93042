"""The whole loop on a living site: what it promises, as the site itself counts it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

import afresh
from afresh.engine.reporting.status import Status
from afresh.engine.runner.engine_run import RunProgress
from afresh.engine.settings.parsing import parse_settings
from afresh.values.items import ItemChange, ItemQuery

pytestmark = pytest.mark.waits

# Half the pages never change, which a plan can win on and uniform polling cannot.
RATES = np.repeat([0.0, 6.0], 10)
BUDGET = 45.0
TWO_POINTS = 0.02


def run(site: VirtualSite, folder: Path, *, for_s: float, **settings: Any) -> tuple[float, float]:
    """Run an engine; when its run began and ended."""
    with site.engine(folder, **settings) as engine:
        engine.add(site.urls())
        begin_s = site.time.now_s()
        engine.run(for_s=for_s)
    return begin_s, site.time.now_s()


def test_every_copy_is_a_version_that_was_served(tmp_path: Path) -> None:
    with VirtualSite([1.0] * 20) as site:
        run(site, tmp_path, for_s=3.0)
        with site.engine(tmp_path) as engine:
            items = engine.store.items.page(ItemQuery(), 100).items
            assert len(items) == 20
            for item in items:
                page = int(item.key.rsplit("/", 1)[1])
                served = {site.content(page, version): version for version in range(400)}
                versions = [engine.get(item.key, version=each.number) for each in engine.versions(item.key)]
                numbers = [served[copy.content] for copy in versions if copy is not None]
                assert len(numbers) == len(versions) >= 1
                assert numbers == sorted(set(numbers), reverse=True)
            assert engine.store.upkeep.check() == []
        assert site.twice == []


@pytest.mark.parametrize(("more", "burst"), [("burst = 1", 1.0), ("burst = 10", 10.0), ("", 40.0)])
def test_the_budget_is_kept_in_every_window_as_the_site_counts(
    tmp_path: Path, more: str, burst: float
) -> None:
    with VirtualSite([0.2] * 30) as site:
        run(site, tmp_path, for_s=2.0, budget="40/s", more=more)
        run(site, tmp_path, for_s=2.0, budget="40/s", more=more)  # a restart is no excuse
        assert site.most_over_budget(40.0, jitter_s=0.003) <= burst - 1.0
        # … and it is spent, but for the start of each run.
        assert len(site.requests) >= 0.9 * 40 * 4


@dataclass(frozen=True)
class Measured:
    """Freshness after learning as the site has it, without the chance of changes, and the best there is."""

    freshness: float
    expected: float
    optimum: float


def measured(folder: Path, policy: str, learn_s: float, measure_s: float) -> Measured:
    """Run an engine that must learn; the optimum is that of the requests it sent, with the true rates."""
    folder.mkdir()
    more = f"[plan]\npolicy = '{policy}'"
    with VirtualSite(RATES.tolist(), seed=3) as site:
        begin_s, end_s = run(site, folder, for_s=learn_s + measure_s, budget=f"{BUDGET}/s", more=more)
        learned_s = begin_s + learn_s
        requests = sum(time_s >= learned_s for time_s, _ in site.requests)
        return Measured(
            site.freshness(learned_s, end_s),
            site.expected_freshness(learned_s, end_s),
            afresh.allocate(RATES, requests / (end_s - learned_s)).freshness,
        )


def test_freshness_is_within_two_points_of_the_optimum_and_above_uniform(tmp_path: Path) -> None:
    adaptive = measured(tmp_path / "adaptive", "adaptive", 7.0, 6.0)
    uniform = measured(tmp_path / "uniform", "uniform", 1.0, 4.0)
    assert adaptive.expected > adaptive.optimum - TWO_POINTS
    assert adaptive.freshness > adaptive.optimum - TWO_POINTS - 0.03  # three standard errors in six seconds
    assert adaptive.expected > uniform.expected + 0.04


@pytest.mark.slow
def test_after_learning_the_freshness_measured_is_within_two_points_of_the_optimum(tmp_path: Path) -> None:
    adaptive = measured(tmp_path / "adaptive", "adaptive", 90.0, 120.0)
    assert adaptive.freshness > adaptive.optimum - TWO_POINTS


def test_the_sites_own_truth_lies_within_what_status_claims(tmp_path: Path) -> None:
    rates = np.geomspace(0.05, 8.0, 20)
    seen: list[tuple[Status, float]] = []
    with (
        VirtualSite(rates.tolist(), seed=4) as site,
        site.engine(tmp_path, budget=f"{BUDGET}/s", more="[plan]\naudit_share = 0.2") as engine,
    ):

        def look(_: RunProgress) -> None:
            claimed = engine.status()
            seen.append((claimed, site.right_at(claimed.time_s)))

        engine.add(site.urls())
        begin_s = site.time.now_s()
        engine.run(for_s=10.0, report=look)
        audited = engine.status().audited
        assert audited.n >= 20
        # In the first second pages are fetched for the first time. Three standard errors: it is one draw.
        throughout = site.freshness(begin_s + 1.0, site.time.now_s())
        assert abs(audited.value - throughout) < 0.75 * (audited.high - audited.low)
    late = seen[len(seen) // 2 :]
    low, high, truth = np.array([(each.freshness.low, each.freshness.high, right) for each, right in late]).T
    assert truth.size >= 5
    assert np.mean((low <= truth) & (truth <= high)) >= 2 / 3  # of 95 % intervals, few and not independent
    assert low.mean() < truth.mean() < high.mean()


def test_once_polls_what_is_due_and_ends(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 10) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        assert engine.run(once=True).polls == 10
        engine.add([site.url(3)], weight=2.0)  # known already
        engine.set([url for url in site.urls() if url != site.url(3)], ItemChange(min_interval_s=3600.0))
        engine.poll_now([site.url(3)])
        assert engine.run(once=True).polls == 1
        assert [path for _, path in site.requests[10:]] == ["/p/3"]


def test_once_does_not_wait_for_items_whose_source_is_no_more(tmp_path: Path) -> None:
    site = VirtualSite([0.0] * 2)
    with site.engine(tmp_path) as engine:
        engine.add(["https://example.org/left-behind"])
    settings = parse_settings(
        "[[source]]\nname = 'another'\nallow_private = true\ndelay = 0\nmin_interval = 0"
    )
    with site.engine(tmp_path, settings=settings) as engine:
        engine.add(site.urls())
        assert engine.run(once=True).polls == 2


def test_get_polls_first_if_the_copy_is_too_old(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 2) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        assert engine.get(site.url(0)) is None
        copy = engine.get(site.url(0), max_age_s=60.0)
        assert copy is not None
        assert copy.content == site.content(0, 0)
        assert engine.get(site.url(0), max_age_s=60.0) == copy
        assert len(site.requests) == 1
        with pytest.raises(afresh.UsageError, match="no item"):
            engine.get("http://127.0.0.1:1/nope")
