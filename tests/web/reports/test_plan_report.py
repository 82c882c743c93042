"""What the plan says of another budget is what it says once that budget is set, and what comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.web.quick_world import QuickWorld
from tests.web.serving import TOKEN, Client, dashboard, engine_of, filled

from afresh.cli.proving.demo.changing_site import cho_pages
from afresh.web.schemas import BudgetPointOut

LOW, HIGH = 3.0, 24.0  # requests per second: more than four times, where an engine that starts re-lays
RATES = 3.0 * cho_pages(120, np.random.default_rng(1))


def interval(point: BudgetPointOut) -> tuple[float, float, float]:
    """Return the freshness that a budget is said to give, between the ends of its interval."""
    assert point.freshness_low is not None
    assert point.freshness is not None
    assert point.freshness_high is not None
    return point.freshness_low, point.freshness, point.freshness_high


def width(point: BudgetPointOut) -> float:
    """Return the width of that interval."""
    low, _, high = interval(point)
    return high - low


def test_promise_plan_status_and_what_comes_agree() -> None:
    world = QuickWorld(RATES, LOW, seed=1)
    world.live(45.0)  # hardly a second look at anything
    young = world.web.compare_budget("freshness", HIGH).then
    world.live(105.0)
    before = world.web.current_snapshot().status.freshness.value
    promised = world.web.compare_budget("freshness", HIGH).then
    # A young engine says how little it knows.
    assert width(young) > 0.3
    assert width(promised) < 0.5 * width(young)
    assert interval(young)[0] < interval(promised)[1] < interval(young)[2]
    world.ask_budget(HIGH)
    today = world.web.report_plan("freshness").today
    assert today == promised
    assert world.web.current_snapshot().status.freshness.value == pytest.approx(before, abs=0.005)
    world.live(40.0)
    came = world.live(60.0)
    then, status = world.web.report_plan("freshness"), world.web.current_snapshot().status
    assert interval(promised)[0] <= came <= interval(promised)[2]
    assert width(then.today) < 0.1
    assert then.today.freshness == pytest.approx(came, abs=0.025)
    assert status.freshness.value == pytest.approx(
        world.scheduler.forecast.mean_freshness(world.now_s())[0], abs=0.02
    )
    assert status.freshness.value == pytest.approx(then.today.freshness, abs=0.04)


def test_the_plan_says_what_uniform_polling_needs() -> None:
    world = QuickWorld(RATES, LOW, seed=1)
    world.live(300.0)  # sooner, the intervals of today are not yet those of the long run
    found = world.web.report_plan("freshness")
    now = world.web.current_snapshot().status.uniform_needs.value
    assert found.now.uniform_needs == now
    assert found.today.uniform_needs == pytest.approx(now, rel=0.05)  # from a sample, and in the long run
    needs = [point.uniform_needs for point in found.budgets if point.uniform_needs is not None]
    assert len(needs) == len(found.budgets)
    assert np.median(needs) > 1.2
    assert world.web.report_plan("age").today.uniform_needs is None


def test_the_plan_rises_with_the_budget(web: Client) -> None:
    found = web.get("/api/v1/plan").json()
    freshness = [point["freshness"] for point in found["budgets"]]
    assert freshness == sorted(freshness)
    assert found["today"]["requests_per_s"] == 2.0
    assert found["today"]["money_per_day"] == pytest.approx(172.8)
    assert min(freshness) < found["today"]["freshness"] < max(freshness)
    assert found["absorbed_per_s"] == 2.0
    dropped = [point["dropped"] for point in found["budgets"]]
    assert dropped == sorted(dropped, reverse=True)


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_what_is_said_of_a_budget_is_said_again_when_it_is_set(tmp_path: Path, objective: str) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        with dashboard(engine) as web:
            for budget in ("0.05/s", "20/s", "113/s"):
                asked = f"/api/v1/plan/at?budget={budget}&objective={objective}"
                then = web.get(asked).json()["then"]
                web.ask("PUT", "/api/v1/budget", {"requests": budget}, token=TOKEN)
                status = web.get("/api/v1/status").json()
                found = web.get(f"/api/v1/plan?objective={objective}").json()
                assert found["today"] == pytest.approx(then)
                freshness = [point["freshness"] for point in found["budgets"]]
                assert freshness == sorted(freshness)
                now = found["now"]
                assert now["dropped"] == status["dropped"]
                assert now["freshness"] == status["freshness"]["value"]
                assert now["age_s"] == status["age_s"]


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_huge_weights_beside_small_ones_are_planned_for(tmp_path: Path, objective: str) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        engine.add([f"https://huge.example/{number}" for number in range(3)], weight=1e15)
        engine.add(["https://tiny.example/"], weight=1e-300)
        with dashboard(engine) as web:
            found = web.get(f"/api/v1/plan?objective={objective}").json()
            assert 0 <= found["today"]["freshness"] <= 1
            assert found["sample"] > 100


def test_what_a_budget_is_worth_in_money(tmp_path: Path) -> None:
    more = 'benefit = "0.02/s"\nstale_cost = "0.01/s"\n'
    with engine_of(tmp_path, more) as engine:
        filled(engine)
        with dashboard(engine) as web:
            found = web.get("/api/v1/plan").json()
            assert found["earns"]
            income = [point["income_per_day"] for point in found["budgets"]]
            # Each right copy earns 0.02 and each wrong one loses 0.01: the optimum of that, not of freshness.
            assert income == sorted(income)
            cost = [point["money_per_day"] for point in found["budgets"]]
            assert cost == sorted(cost)
            beyond = [web.get(f"/api/v1/plan/at?budget={most}/s").json()["then"] for most in (500, 1000)]
            assert cost[-1] == beyond[0]["money_per_day"] == beyond[1]["money_per_day"] < 86400 * 0.001 * 128
            weight = 122 + 2.5
            assert income[-1] < 86400 * 0.02 * weight
            assert income[0] > -86400 * 0.01 * weight
            now = found["today"]
            right = (now["income_per_day"] + now["money_per_day"]) / 86400 / weight
            assert right == pytest.approx(0.03 * now["freshness"] - 0.01, rel=1e-6)
            other = web.get("/api/v1/plan/at?budget=0.05/s").json()
            assert other["then"]["income_per_day"] < other["today"]["income_per_day"]
            assert "Net income per day" in web.get("/plan").text


def test_without_prices_the_plan_says_how_to_set_them(web: Client) -> None:
    found = web.get("/api/v1/plan").json()
    assert not found["earns"]
    assert found["today"]["income_per_day"] is None
    assert 'benefit = "0.01/d"' in web.get("/plan").text


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic", "missed", "lag"])
def test_every_objective_has_a_plan(web: Client, objective: str) -> None:
    found = web.get(f"/api/v1/plan?objective={objective}").json()
    assert found["objective"] == objective
    assert len(found["dot_rate"]) == len(found["dot_key"]) == 123
    assert max(found["curve_frequency"]) > 0


def test_another_budget_drops_and_brings_back(web: Client) -> None:
    less = web.get("/api/v1/plan/at?budget=0.01/s").json()
    more = web.get("/api/v1/plan/at?budget=500/s").json()
    assert less["gone"] > 0
    assert less["back"] == 0
    assert less["then"]["freshness"] < less["today"]["freshness"] < more["then"]["freshness"]
    assert more["gone"] == 0
    assert 0 < len(less["gone_named"]) <= 8


def test_without_items_every_budget_gives_the_same(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        other = web.get("/api/v1/plan/at?budget=5/s").json()
        assert (other["back"], other["gone"], other["then"]["freshness"]) == (0, 0, 1.0)
        assert web.get("/api/v1/plan").json()["budgets"] == []
        assert "Nothing to plan yet" in web.get("/plan").text
