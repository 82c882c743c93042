"""Item views in ``status`` and ``why``: rates add up, probabilities multiply, and mistakes are named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.virtual_time import VirtualTime

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.item_view_status import item_view_statuses
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import UsageError

URLS = ["https://a/0", "https://a/1", "https://a/2", "https://a/3"]
TABLES = "\n".join(
    f"[[view]]\nname = '{name}'\nitems = {items}\nweight = {weight}"
    for name, items, weight in (
        ("pair", URLS[:2], 2),
        ("one", URLS[:1], 0),
        ("strange", [URLS[0], "https://nowhere/"], 0),
        ("new", URLS[3:], 0),
    )
)


def engine_of(folder: Path, time: VirtualTime) -> Engine:
    engine = make_engine(parse_settings(TABLES), folder, clock=time)
    engine.add(URLS)
    return engine


def report_polls(engine: Engine, time: VirtualTime, rates: Sequence[float], polls: int = 60) -> None:
    """Report a log of polls every two seconds, which ends now, of pages that change at these rates."""
    rng, now_s = np.random.default_rng(3), time.now_s()
    engine.observe(
        Reported(url, now_s - 2.0 * (polls - at), changed=bool(rng.random() < -math.expm1(-2.0 * rate)))
        for url, rate in zip(URLS, rates, strict=False)
        for at in range(polls + 1)
    )


def test_rates_add_up_and_probabilities_multiply(tmp_path: Path) -> None:
    time = VirtualTime()
    with engine_of(tmp_path, time) as engine:
        report_polls(engine, time, [0.4, 0.1, 0.2])
        time.passed_s += 1.5
        views = {view.name: view for view in engine.status().item_views}
        first, second = (engine.why(url) for url in URLS[:2])
    pair, one = views["pair"], views["one"]
    assert list(views) == ["pair", "one", "strange", "new"]
    assert 0.2 < first.fresh_now < 0.9
    assert pair.fresh == pytest.approx(first.fresh_now * second.fresh_now, rel=1e-3)
    assert one.fresh == pytest.approx(first.fresh_now, rel=1e-3)
    rates = (first.rate_per_s, first.rate_low, first.rate_high)
    assert (one.rate_per_s, one.low_per_s, one.high_per_s) == pytest.approx(rates, rel=0.1)
    assert pair.rate_per_s == pytest.approx(first.rate_per_s + second.rate_per_s, rel=0.05)
    assert pair.low_per_s < 0.5 < pair.high_per_s, "the true rate of the pair is 0.4 + 0.1"
    assert pair.high_per_s < first.rate_high + second.rate_high, "both are not high at once"
    assert (pair.weight, pair.items, pair.unknown) == (2.0, 2, 0)
    assert pair.changed_s == max(first.item.changed_s or 0.0, second.item.changed_s or 0.0)
    assert pair.polled_s == min(first.item.polled_s or 0.0, second.item.polled_s or 0.0)
    assert (views["strange"].unknown, views["strange"].fresh) == (1, 0.0)
    assert (views["new"].fresh, math.isnan(views["new"].polled_s)) == (0.0, True)


def test_a_view_is_as_fresh_as_its_rate_says(tmp_path: Path) -> None:
    """After τ seconds without polls, no page of three has changed with probability e^(−0.45·τ)."""
    time = VirtualTime()
    table = f"[[view]]\nname = 'v'\nitems = {URLS[:3]}"
    with make_engine(parse_settings(table), tmp_path, clock=time) as engine:
        engine.add(URLS[:3])
        report_polls(engine, time, [0.3, 0.1, 0.05], polls=300)
        now_s = time.now_s()
        found = [item_view_statuses(engine.store, engine.current(), now_s + after)[0] for after in (0.5, 3.0)]
    assert [view.fresh for view in found] == pytest.approx(np.exp([-0.45 * 0.5, -0.45 * 3.0]), abs=0.08)


def test_why_names_the_item_that_is_most_probably_stale(tmp_path: Path) -> None:
    time = VirtualTime()
    with engine_of(tmp_path, time) as engine:
        before = engine.why_view("pair")
        report_polls(engine, time, [0.4, 0.1, 0.2])
        time.passed_s += 5.0
        pair, strange = engine.why_view("pair"), engine.why_view("strange")
        with pytest.raises(UsageError, match="there is no view 'pears': did you mean 'pair'"):
            engine.why_view("pears")
        with pytest.raises(UsageError, match="there is no item 'pears': did you mean 'pair'"):
            engine.why("pears")
    assert (before.view.fresh, "never polled" in before.reasons[0]) == (0.0, True)
    assert [item.key for item in pair.items] == URLS[:2]
    assert pair.items[0].fresh < pair.items[1].fresh
    assert f"most probably stale by {URLS[0]}" in pair.reasons[0]
    assert f"most often with {URLS[0]}" in pair.reasons[1]
    assert "adds 2 to the weight" in pair.reasons[2]
    assert "one of its items does not exist" in strange.reasons[0]
    assert "afresh add https://nowhere/" in strange.reasons[0]
    assert strange.items[0].key == "https://nowhere/"
    assert "its weight is 0" in strange.reasons[-1]


def test_settings_without_views_have_none(tmp_path: Path) -> None:
    with make_engine(parse_settings(""), tmp_path) as engine:
        engine.add(URLS)
        assert engine.status().item_views == ()
