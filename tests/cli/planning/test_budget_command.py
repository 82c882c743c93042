"""``afresh budget``: targets by freshness and by age, and the curve."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh


def test_least_budget_for_a_freshness_reaches_it(afresh: Afresh, table_5: Path) -> None:
    found = json.loads(afresh("budget", table_5, "--target", "0.8", "--json").out)
    assert found["freshness"] == pytest.approx(0.8, abs=1e-9)
    plan = json.loads(afresh("plan", table_5, "--budget", f"{found['budget']!r}/d", "--json").out)
    assert plan["freshness"] == pytest.approx(0.8, abs=1e-9)
    assert plan["multiplier"] == pytest.approx(found["marginal"], rel=1e-6)


def test_least_budget_for_an_age_is_found_by_the_age_plan(afresh: Afresh, table_5: Path) -> None:
    by_age = json.loads(afresh("budget", table_5, "--target", "10m", "--json").out)
    assert by_age["age"] == pytest.approx(10 / 1440, rel=1e-9)
    by_freshness = afresh("budget", table_5, "--target", "10m", "--objective", "freshness", "--json").out
    assert by_age["budget"] < json.loads(by_freshness)["budget"]


def test_simple_policies_need_more_for_the_same(afresh: Afresh, table_5: Path) -> None:
    needed = {}
    for policy in ("optimal", "uniform", "proportional"):
        found = json.loads(afresh("budget", table_5, "--target", "0.8", "--policy", policy, "--json").out)
        assert found["freshness"] == pytest.approx(0.8, abs=1e-9)
        needed[policy] = found["budget"]
        curve = afresh("budget", table_5, "--curve", "--policy", policy)
        assert len(curve.out.splitlines()) == 42
    assert needed["optimal"] < needed["uniform"] < needed["proportional"]
    ran = afresh("budget", table_5, "--target", "0.8", "--policy", "best")
    assert (ran.code, "'best'" in ran.err) == (2, True)


def test_equal_items_need_their_rate_over_0_464_for_0_8(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,1\n")
    found = json.loads(afresh("budget", "items.csv", "--target", "0.8", "--json").out)
    assert found["budget"] == pytest.approx(2.154185, rel=1e-6)


def test_a_target_in_percent(afresh: Afresh, table_5: Path) -> None:
    plain = afresh("budget", table_5, "--target", "0.8").out
    assert afresh("budget", table_5, "--target", "80%").out == plain


def test_a_content_lag_as_a_target_is_what_the_plan_of_that_budget_has(afresh: Afresh, table_5: Path) -> None:
    lag = ("--target", "lag=6h", "--json")
    budget, dearer = (
        json.loads(afresh("budget", table_5, *lag, *more).out)["budget"]
        for more in ((), ("--objective", "freshness"))
    )
    # The lag of item i is λ/(6f²), and f is proportional to the cube root of λ: Σ λ/(6f²)/5 = 1/4 day.
    roots = [rate ** (1 / 3) for rate in range(1, 6)]
    scale = math.sqrt(sum(roots) / 6 / 5 / 0.25)
    assert budget == pytest.approx(scale * sum(roots), rel=1e-9)
    assert dearer > 1.05 * budget
    plan = ("plan", table_5, "--objective", "lag", "--budget", f"{budget!r}/d")
    assert json.loads(afresh(*plan, "--json").out)["content_lag"] == pytest.approx(0.25, rel=1e-9)
    assert "6 h; 0 is best" in afresh(*plan, "-o", "plan.csv").err
    assert "least budget for content lag 6h" in afresh("budget", table_5, *lag[:2], "-o", "point.csv").err
    other = afresh("plan", table_5, "--objective", "age", "--budget", "5/d", "--json")
    assert "content_lag" not in json.loads(other.out)


def test_curve_rises_and_its_marginal_falls(afresh: Afresh, table_5: Path) -> None:
    ran = afresh("budget", table_5, "--curve")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(rows[0]) == ["budget", "freshness", "age", "marginal", "dropped"]
    fresh = [float(row["freshness"]) for row in rows]
    marginal = [float(row["marginal"]) for row in rows]
    assert fresh == sorted(fresh)
    assert marginal == sorted(marginal, reverse=True)
    assert (fresh[0] < 0.02, fresh[-1] > 0.98) == (True, True)
    assert int(rows[0]["dropped"]) > int(rows[-1]["dropped"]) == 0


def test_curve_as_json_and_as_a_picture(afresh: Afresh, table_5: Path, tmp_path: Path) -> None:
    ran = afresh("budget", table_5, "--curve", "--json", "--plot", "curve.svg")
    curve = json.loads(ran.out, parse_constant=pytest.fail)["curve"]  # Infinity is not JSON
    assert curve[0]["age"] is None
    assert len(curve) > 10
    assert (tmp_path / "curve.svg").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "--target"),
        (("--target", "0.8", "--curve"), 2, "either"),
        (("--target", "1.5"), 2, "from 0 to 1"),
        (("--target", "soon"), 2, "'soon' is no target: give a freshness (0.9), an age (6h) or lag=6h"),
        (("--target", "lag=soon"), 2, "'lag=soon' is no target"),
        (("--target", "lag=6h", "--windows", "22:00-06:00"), 2, "--windows needs the objective"),
        (("--target", "lag=0s"), 1, "limit"),
        (("--target", "1"), 1, "limit"),
    ],
)
def test_targets_that_cannot_be(
    afresh: Afresh, table_5: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = afresh("budget", table_5, *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_windows_need_more_budget_for_the_same_freshness(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,0.5\nb,1\n")
    always, night, uniform = (
        json.loads(afresh("budget", "items.csv", "--target", "0.7", *more, "--json").out)["budget"]
        for more in ((), ("--windows", "22:00-06:00"), ("--windows", "22:00-06:00", "--policy", "uniform"))
    )
    assert always < night < uniform
    plan = afresh("plan", "items.csv", "--budget", f"{night}/d", "--windows", "22:00-06:00", "--json")
    assert json.loads(plan.out)["freshness"] == pytest.approx(0.7, abs=1e-6)
    ran = afresh("budget", "items.csv", "--target", "0.99", "--windows", "22:00-06:00")
    assert (ran.code, "only the limit" in ran.err) == (1, True), ran.err
    curve = json.loads(afresh("budget", "items.csv", "--curve", "--windows", "22:00-06:00", "--json").out)
    assert max(point["freshness"] for point in curve["curve"]) < 0.9
