"""The whole loop on a living site: what it promises, as the site itself counts it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import CLOCK, LivingSite, engine_for

import afresh
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings import read
from afresh.values.items import ItemQuery

# Half the pages never change, which a plan can win on and uniform polling cannot.
RATES = np.repeat([0.0, 2.0], 20)
BUDGET = 30.0


def run(site: LivingSite, folder: Path, *, for_s: float, **settings: str) -> tuple[float, float]:
    """Run an engine; when its run began and ended."""
    with engine_for(folder, **settings) as engine:  # type: ignore[arg-type]
        engine.add(site.urls())
        begin_s = CLOCK.now_s()
        engine.run(for_s=for_s)
    return begin_s, CLOCK.now_s()


def test_every_copy_is_a_version_that_was_served(tmp_path: Path) -> None:
    with LivingSite([1.0] * 20) as site:
        run(site, tmp_path, for_s=3.0)
        with engine_for(tmp_path) as engine:
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


def test_the_budget_is_kept_in_every_window_as_the_site_counts(tmp_path: Path) -> None:
    with LivingSite([0.2] * 30) as site:
        run(site, tmp_path, for_s=2.0, budget="40/s")
        run(site, tmp_path, for_s=2.0, budget="40/s")  # a restart is no excuse
        assert site.most_over_budget(40.0, jitter_s=0.08 + site.late_s) <= 0
        # … and it is spent: at least three quarters, beside other work on this machine.
        assert len(site.requests) >= 0.75 * 40 * 4


def measured(folder: Path, policy: str, learn_s: float, measure_s: float) -> tuple[float, float]:
    """Freshness after learning as the site itself measures it, and the best at the requests it was sent."""
    folder.mkdir()
    more = f"[plan]\npolicy = '{policy}'"
    with LivingSite(RATES.tolist(), seed=3) as site:
        begin_s, end_s = run(site, folder, for_s=learn_s + measure_s, budget=f"{BUDGET}/s", more=more)
        optimum = afresh.allocate(RATES, len(site.requests) / (end_s - begin_s)).freshness
        if policy == "adaptive":
            check_claims(folder, site)
        return site.freshness(begin_s + learn_s, end_s), optimum


def check_claims(folder: Path, site: LivingSite) -> None:
    """What ``status`` claims is right within its interval, audits within theirs."""
    with engine_for(folder, budget=f"{BUDGET}/s") as engine:
        now_s = CLOCK.now_s()
        claimed = engine.status().freshness
        truth = float(np.mean([is_right(engine, site, page, now_s) for page in range(RATES.size)]))
        # Three standard errors, for this is one draw of many.
        assert abs(claimed.value - truth) < 1.5 * (claimed.high - claimed.low) / 2 + 0.02


def test_freshness_is_near_the_optimum_above_uniform_and_as_claimed(tmp_path: Path) -> None:
    adaptive, optimum = measured(tmp_path / "adaptive", "adaptive", 6.0, 10.0)
    uniform, _ = measured(tmp_path / "uniform", "uniform", 2.0, 7.0)
    assert adaptive > uniform + 0.04
    assert adaptive > optimum - 0.07  # a few seconds of learning; the slow suite asks for more


@pytest.mark.slow
def test_after_learning_freshness_is_within_two_points_of_the_optimum(tmp_path: Path) -> None:
    adaptive, optimum = measured(tmp_path / "adaptive", "adaptive", 90.0, 120.0)
    assert adaptive > optimum - 0.02


def is_right(engine: Engine, site: LivingSite, page: int, now_s: float) -> bool:
    """Whether the copy of a page is right."""
    copy = engine.get(site.url(page))
    return copy is not None and copy.content == site.content(page, site.version(page, now_s))


def test_once_polls_what_is_due_and_ends(tmp_path: Path) -> None:
    with LivingSite([0.0] * 10) as site, engine_for(tmp_path) as engine:
        engine.add(site.urls())
        assert engine.run(once=True).polls == 10
        engine.add([site.url(3)], weight=2.0)  # known already
        engine.poll_now([site.url(3)])
        done = engine.run(once=True)
        assert 1 <= done.polls < 10
        assert f"/p/{3}" in [path for _, path in site.requests[10:]]


def test_once_does_not_wait_for_items_whose_source_is_no_more(tmp_path: Path) -> None:
    with engine_for(tmp_path) as engine:
        engine.add(["https://example.org/left-behind"])
    settings = read("[[source]]\nname = 'another'\nallow_private = true\ndelay = 0")
    with LivingSite([0.0] * 2) as site, make_engine(settings, tmp_path) as engine:
        engine.add(site.urls())
        assert engine.run(once=True).polls == 2


def test_get_polls_first_if_the_copy_is_too_old(tmp_path: Path) -> None:
    with LivingSite([0.0] * 2) as site, engine_for(tmp_path) as engine:
        engine.add(site.urls())
        assert engine.get(site.url(0)) is None
        copy = engine.get(site.url(0), max_age_s=60.0)
        assert copy is not None
        assert copy.content == site.content(0, 0)
        assert engine.get(site.url(0), max_age_s=60.0) == copy
        assert len(site.requests) == 1
        with pytest.raises(afresh.UsageError, match="no item"):
            engine.get("http://127.0.0.1:1/nope")
