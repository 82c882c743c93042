"""The reasons of ``why`` and the number of due items: limits, rows that wait for a cursor, fresh views."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh import Reported
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.reporting.item_snapshot import take_snapshot
from afresh.engine.reporting.rate_words import expected_rate
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.scheduler.row_policy import CURSOR, RowPolicy
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import LISTED_AT, SETTLED_SOURCES, STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport

SETTINGS = """
[[source]]
name = "web"
[[source]]
name = "rows"
kind = "sql"
url = "sqlite:nowhere.db"
query = "SELECT 1 AS k"
key = "k"
cursor = "k"
[[source]]
name = "house"
kind = "view"
url = "postgresql:///nowhere"
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with make_engine(parse_settings(SETTINGS), tmp_path, seed=1) as made:
        yield made


def observe(engine: Engine, key: str, source: str, *, changing: bool) -> None:
    engine.add([key], source=source)
    now_s = time.time()
    contents = [f"{turn if changing else 0}".encode() for turn in range(41)]
    engine.observe(
        [
            Reported(key, now_s - 60.0 * (42 - turn), content=content, source=source)
            for turn, content in enumerate(contents)
        ]
    )


def due(engine: Engine, source: str) -> list[str]:
    return [item.key for item in engine.due(5, source=source, within_budget=False)]


def test_other_weights_keep_to_the_least_interval(engine: Engine) -> None:
    """Its polls would pay every second, but the source has a min_interval of a minute."""
    observe(engine, "https://a.example/1", "web", changing=True)
    reasons = " ".join(engine.why("https://a.example/1").reasons)
    assert "polled as often: its min_interval decides" in reasons


def test_the_expected_rate_is_a_median(engine: Engine) -> None:
    """The mean of a wide distribution of rates was a hundred times as high."""
    for number in range(3):
        observe(engine, f"https://a.example/{number}", "web", changing=True)
    observe(engine, "https://a.example/3", "web", changing=False)
    item = engine.store.items.get("https://a.example/3")
    assert item is not None
    policy = take_snapshot(engine.store, engine.settings, [item], time.time()).scheduler.policy
    rows = policy.item_rows.rows([item.id])
    share = policy.ranking.adaptive.belief.posteriors(rows)[0]
    rates = policy.ranking.possible_rates(rows)[0]
    median = expected_rate(policy, int(rows[0]))
    assert 0.4 < share[rates <= median].sum() / share.sum() < 0.6
    assert median < 0.1 * float(share @ rates)


def test_rows_whose_cursor_has_not_moved_are_left_alone_by_every_command(engine: Engine) -> None:
    for key in ("1", "2"):
        observe(engine, key, "rows", changing=True)
    assert set(due(engine, "rows")) == {"1", "2"}
    assert engine.status().due == 2
    soon_s = f"{time.time() + 30.0} - ".encode()
    engine.store.state.set({SETTLED_SOURCES: json.dumps(["rows"]).encode(), LISTED_AT + "rows": soon_s})
    two = engine.store.items.get("2", "rows")
    assert two is not None
    engine.store.notices.add([two.id], time.time(), CURSOR)
    assert due(engine, "rows") == ["2"]
    assert engine.status().due == 1
    alone, moved = (engine.why(key, source="rows") for key in ("1", "2"))
    assert (alone.waits_for_cursor, moved.waits_for_cursor) == (True, False)
    assert any("cursor has not moved" in each for each in alone.reasons)
    # Nobody reads the listings any more, so that no cursor announces anything.
    engine.store.state.set({LISTED_AT + "rows": f"{time.time() - 3600.0} - ".encode()})
    assert set(due(engine, "rows")) == {"1", "2"}


def test_fresh_views_are_not_due(engine: Engine) -> None:
    engine.add(["reports.daily"], source="house")
    fresh = StalenessReport(5.0, False, None, True, 0.1, 0.1, 0.1, 1.0)
    engine.store.state.set({STALENESS_REPORTS + "house": pack_reports({"reports.daily": fresh})})
    observe(engine, "reports.daily", "house", changing=True)
    assert due(engine, "house") == []
    assert engine.status().due == 0


def test_a_dropped_page_is_polled_now_if_its_poll_teaches_enough_and_else_reviewed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``why`` said "its turn has come" beside "next poll in two minutes" and "its next poll is a review"."""
    site = VirtualSite([1.0] * 30 + [0.02] * 30, lasts_s=60.0)
    with site.engine(tmp_path, budget="4/s", source="respect_robots = false") as engine:
        engine.add(site.urls())
        engine.run(for_s=30.0)
        found = (engine.why(url) for url in site.urls())  # as many as need be: each looks at everything
        dropped = (why for why in found if math.isinf(why.interval_s) and why.marginal < why.threshold)
        before = next(why for why in dropped if why.next_s > why.time_s)
        assert any("its next poll is a review" in words for words in before.reasons)
        monkeypatch.setattr(
            RowPolicy, "poll_values", lambda policy, _now_s: np.full(60, 2.0 * policy.shadow_price)
        )
        after = engine.why(before.item.key)
        assert after.next_s == after.time_s
        assert not any("its next poll is a review" in words for words in after.reasons)
        assert any("a poll tells how often" in words for words in after.reasons)
