"""Every figure of Razniewski 2016 on money, as recomputed; a comment says where the paper prints another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afresh.model.decay import Exponential, Linear
from afresh.money.best_interval import best_interval, best_intervals
from afresh.money.inverse import implied_benefit
from afresh.money.limited import with_refreshes
from afresh.money.total_refreshes import best_total_refreshes
from afresh.papers.razniewski.incomes import against_uniform, net_income

AGES = np.array([0.457, 0.316, 0.163, 0.098])  # the paper's rates at 25, 30, 40 and 50
FORTY = 0.163


def test_section_2_two_doctors() -> None:
    doctors = best_intervals([1 / 10, 1 / 20], 1.0, 1.0, decay="linear")
    assert doctors.interval == pytest.approx([np.sqrt(20), np.sqrt(40)])  # 4.5 and 6.3 years
    assert doctors.freshness == pytest.approx([0.7764, 0.8419], abs=5e-5)
    assert 10 * doctors.net_income.sum() == pytest.approx(12.366, abs=5e-4)  # 12.4
    assert 10 * best_total_refreshes([1 / 10, 1 / 20], 1.0, 1.0, decay="linear") == pytest.approx(
        3.817, abs=5e-4
    )
    smith = 10 * net_income([10 / 3, 5.0], 1 / 10, 1.0, 1.0, decay="linear")
    assert smith == pytest.approx([5.333, 5.5], abs=5e-4)
    assert 10 * net_income(10.0, 1 / 20, 1.0, 1.0, decay="linear") == pytest.approx(6.5)
    three = with_refreshes([1 / 10, 1 / 20], 1.0, 1.0, 0.3, decay="linear")
    assert 12.0 < 10 * three.net_income.sum() < 12.366
    assert three.refreshes == pytest.approx(0.3)


def test_table_1_rates_and_half_lives() -> None:
    moved = np.array([0.367, 0.271, 0.150, 0.093])
    rates = -np.log1p(-moved)
    assert rates == pytest.approx(AGES, abs=6e-4)
    assert np.log(2) / rates == pytest.approx([1.52, 2.19, 4.27, 7.10], abs=5e-3)  # prints 4.25, 7.07
    assert Exponential(rates).survival(1.0) == pytest.approx(1 - moved)
    assert Linear(moved).survival(1.0) == pytest.approx(1 - moved)


def test_table_2_freshness() -> None:
    intervals = np.array([0.25, 0.5, 1, 2, 5, 10])
    percent = 100 * Exponential(AGES[:, None]).integral(intervals) / intervals
    printed = """94 89 80 66 39 22
                 96 93 86 74 50 30
                 98 96 92 85 68 49
                 99 98 95 91 79 64"""
    expected = np.array([[int(cell) for cell in row.split()] for row in printed.splitlines()])
    assert np.abs(percent - expected).max() <= 0.5


def test_example_3_net_income() -> None:
    assert net_income(2.0, FORTY, 1.0, 1.0) == pytest.approx(0.3534, abs=5e-5)


def test_example_4_best_intervals_and_uniform() -> None:
    ages = best_intervals(AGES, 1.0, 1.0)
    assert ages.interval == pytest.approx([3.38, 3.61, 4.42, 5.36], abs=5e-3)
    assert ages.net_income == pytest.approx([0.21, 0.32, 0.49, 0.59], abs=5e-3)
    assert ages.interval.mean() == pytest.approx(4.19, abs=5e-3)  # prints 4.06
    alike, best = against_uniform(AGES, 1.0, 1.0, interval=4.06)
    assert alike / 4 == pytest.approx(0.39733, abs=5e-6)
    assert best / 4 == pytest.approx(0.40266, abs=5e-6)
    assert 1 - alike / best == pytest.approx(0.01324, abs=5e-6)


def test_example_5_futile() -> None:
    linear, exponential = (best_interval(1.0, 1.0, 1.0, decay=name) for name in ("linear", "exponential"))
    assert linear.futile
    assert exponential.futile
    assert (linear.break_even, exponential.break_even) == (2.0, 1.0)
    assert linear.reason.startswith("changes too fast for its cost")
    assert "pays above a benefit of 2, 2 times the cost" in linear.reason
    assert net_income([1.0, 0.5], 1.0, 1.0, 1.0, decay="linear") == pytest.approx([-0.5, -1.25])
    assert not best_interval(0.4999, 1.0, 1.0, decay="linear").futile
    assert not best_interval(0.9999, 1.0, 1.0).futile


def test_example_7_pages_of_doctors() -> None:
    pages = best_intervals(0.15, 1.0, 1.0, decay="linear", size=[200, 50, 5, 1])
    assert pages.interval == pytest.approx([0.26, 0.52, 1.63, 3.65], abs=5e-3)  # prints 3.66


def test_example_8_stale_cost() -> None:
    assert net_income(4.42, FORTY, 1.0, 1.0) == pytest.approx(0.486, abs=5e-4)  # prints .42
    income = net_income([4.42, 3.0], FORTY, 1.0, 1.0, stale_cost=1.0)
    assert income == pytest.approx([0.199, 0.249], abs=5e-4)  # prints .20, .24
    assert best_interval(FORTY, 1.0, 1.0, stale_cost=1.0).interval == pytest.approx(2.89, abs=5e-3)


def test_example_9_cheap_checks() -> None:
    income = net_income([4.42, 1.0], FORTY, 1.0, 0.1, update_cost=1.0)
    assert income == pytest.approx([0.574, 0.672], abs=5e-4)  # prints .60, .73
    best = best_interval(FORTY, 1.0, 0.1, update_cost=1.0)
    assert best.interval == pytest.approx(1.30, abs=5e-3)
    assert best.net_income == pytest.approx(0.677, abs=5e-4)


def test_table_4_number_of_crawls() -> None:
    sites = 270 * np.array([0.23, 0.15, 0.16, 0.16, 0.30])
    rates = np.log(2) / np.array([1, 7, 30, 120, 365])
    ratios = [0.1, 0.3, 0.355, 0.5, 1, 10, 100]
    each = [best_total_refreshes(rates, ratio, 1.0, count=sites) for ratio in ratios]
    # prints 60 for the first, 15882 for the last
    assert 30 * np.array(each) == pytest.approx([92, 243, 270, 333, 1033, 4712, 16018], abs=0.6)


def test_section_8_4_sites() -> None:
    sites: dict[str, Any] = {"size": [1024, 61, 22], "cost_of_size": "sqrt"}
    each = best_intervals(0.24, 1.0, 1.0, **sites)
    assert each.interval == pytest.approx([0.532, 1.129, 1.500], abs=5e-4)
    incomes = {
        u: against_uniform(0.24, 1.0, 1.0, interval=u, count=[1, 10, 20], **sites) for u in (1.5, 0.53, 1)
    }
    assert [alike for alike, _ in incomes.values()] == pytest.approx([1605.8, 1562.8, 1640.0], abs=0.05)
    assert incomes[1][1] == pytest.approx(1673.3, abs=0.05)  # prints 1672


def test_section_9_search_engine() -> None:
    assert implied_benefit(1 / 75, 1.0, 1.0) == pytest.approx(11350, abs=0.5)
    assert implied_benefit(1 / 75, float(np.log(2)), 1.0) == pytest.approx(16331, abs=0.5)  # prints 16 000
