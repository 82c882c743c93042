"""Plans under any decay function: checks that find every decay by themselves, and the flat pieces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.explain import explain_parts
from afresh.allocation.gains import DecayAge, DecayFreshness
from afresh.model.decay import DECAYS, Decay, Empirical, Geometric, Linear, Weibull, decay_from
from afresh.values.errors import InputError, UsageError

SPECS = [name if each.example is None else f"{name}:{each.example}" for name, each in sorted(DECAYS.items())]
SPECS += ["weibull:0.3", "weibull:3", "lomax:0.5", "lomax:4"]

every = pytest.mark.parametrize("spec", SPECS)
objectives = pytest.mark.parametrize("objective", ["freshness", "age"])
rate_lists = st.lists(st.floats(-2, 2).map(lambda x: 10.0**x), min_size=1, max_size=6)


def plan_value(decay: Decay, frequency: np.ndarray, objective: str) -> float:
    gains = (DecayFreshness if objective == "freshness" else DecayAge)(decay, len(frequency))
    return float(gains.value(frequency).sum())


@every
@objectives
@given(rates=rate_lists, effort=st.floats(-1, 1.5).map(lambda x: 10.0**x), data=st.data())
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_no_shift_of_spend_improves_the_plan(
    spec: str, objective: str, rates: list[float], effort: float, data: st.DataObject
) -> None:
    """Optimal, told without derivatives: moving spend from any item to any other gains nothing."""
    budget = effort * sum(rates)
    plan = allocate(rates, budget, decay=spec, objective=objective)
    assert plan.spend <= budget * (1 + 1e-9)
    if plan.multiplier > 0:
        assert plan.spend == pytest.approx(budget, rel=1e-9)
    decay = decay_from(spec, rates)
    value = plan_value(decay, plan.frequency, objective)
    share = data.draw(st.floats(0.001, 1.0))
    for giver, taker in itertools.permutations(range(len(rates)), 2):
        other = plan.frequency.copy()
        moved = share * other[giver]
        other[giver] -= moved
        other[taker] += moved
        assert plan_value(decay, other, objective) <= value + 1e-9 * max(1.0, abs(value))
    # The marginal may jump at a step, where the multiplier lies between its two sides.
    assert 0 <= plan.gap <= 1e-9 * max(1.0, plan.multiplier * budget)


@objectives
@given(rates=rate_lists, effort=st.floats(-1, 1.5).map(lambda x: 10.0**x))
@settings(deadline=None)
def test_exponential_objects_agree_with_the_closed_form(
    objective: str, rates: list[float], effort: float
) -> None:
    budget = effort * sum(rates)
    closed = allocate(rates, budget, objective=objective)
    searched = allocate(rates, budget, objective=objective, decay=decay_from("exponential", rates))
    np.testing.assert_allclose(searched.frequency, closed.frequency, rtol=1e-7, atol=1e-9 * budget)
    assert searched.freshness == pytest.approx(closed.freshness, rel=1e-9)


def test_razniewski_two_addresses() -> None:
    """§2: addresses wrong after 10 and 20 years; of all ways to place 3 updates in 10 years 2 + 1 is best."""
    rates = [1 / 10, 1 / 20]
    best = allocate(rates, 3 / 10, decay="linear")
    np.testing.assert_allclose(best.frequency, 0.3 * np.sqrt([2.0, 1.0]) / (1 + np.sqrt(2.0)), rtol=1e-9)
    whole = {n: plan_value(Linear(rates), np.array([n, 3 - n]) / 10, "freshness") / 2 for n in range(4)}
    assert max(whole, key=lambda n: whole[n]) == 2
    assert whole[2] == pytest.approx(0.75)
    assert best.freshness > 0.75


def test_linear_items_enter_one_after_the_other() -> None:
    """The marginal is flat from T = 1/λ on, so each item comes in at a jump of the spend: interpolated."""
    plan = allocate([1.0, 2.0], 0.5, decay="linear")
    np.testing.assert_allclose(plan.frequency, [0.5, 0.0], atol=1e-12)
    assert plan.multiplier == pytest.approx(0.5)
    assert plan.gap < 1e-12
    plan = allocate([1.0, 1.0], 0.5, decay="linear")
    np.testing.assert_allclose(plan.frequency, [0.25, 0.25])


def test_geometric_steps_saturate() -> None:
    """Nothing is gained by refreshing within a step: the rest of the budget is left."""
    plan = allocate([1.0, 2.0], 5.0, decay="geometric")
    np.testing.assert_allclose(plan.frequency, [1.0, 1.0], rtol=1e-12)
    assert plan.multiplier == 0
    assert plan.freshness == pytest.approx(1.0)
    assert plan.spend == pytest.approx(2.0)


def test_a_decay_object_with_a_row_for_each_item() -> None:
    plan = allocate([1.0, 1.0], 2.0, decay=Weibull(np.array([1.0, 1.0]), np.array([0.5, 2.0])))
    assert plan.spend == pytest.approx(2.0)
    assert plan.frequency[0] != pytest.approx(plan.frequency[1])


@objectives
def test_empirical_with_a_plateau(objective: str) -> None:
    """A third of the copies never goes wrong: what is never refreshed still has that freshness."""
    decay = Empirical([1.0, 2.0], [0.6, 1 / 3])
    plan = allocate([1.0, 1.0, 0.0], 0.8, decay=decay, objective=objective)
    assert plan.spend == pytest.approx(0.8, rel=1e-9)
    np.testing.assert_allclose(plan.frequency, [0.4, 0.4, 0.0], rtol=1e-6)
    nothing = allocate([1.0], 0.0, decay=decay, objective=objective)
    assert nothing.freshness == pytest.approx(1 / 3)
    assert nothing.age == np.inf


def test_a_name_for_each_item() -> None:
    names = ["linear", "exponential", "weibull:0.5", "geometric", "exponential"]
    rates = [0.1, 0.2, 0.3, 0.4, 0.5]
    plan = allocate(rates, 2.0, decay=names)
    assert plan.spend == pytest.approx(2.0, rel=1e-9)
    assert plan.gap < 1e-10
    why = explain_parts(rates, plan, decay=names)(slice(None))
    np.testing.assert_allclose(why.marginal[[0, 1, 2, 4]], plan.multiplier, rtol=1e-7)


def test_static_and_unweighted_items_get_nothing() -> None:
    plan = allocate([0.0, 1.0, 1.0], 2.0, weights=[1.0, 0.0, 1.0], decay="weibull:2")
    np.testing.assert_allclose(plan.frequency, [0.0, 0.0, 2.0], rtol=1e-9)


def test_bounds_and_caps_go_with_any_decay() -> None:
    plan = allocate(
        [1.0, 2.0, 3.0], 3.0, decay="lomax:1.5", lower=0.1, upper=2.0, groups=list("aab"), caps={"a": 0.9}
    )
    assert plan.frequency[:2].sum() == pytest.approx(0.9, rel=1e-9)
    assert plan.frequency[2] == 2.0
    assert plan.gap < 1e-10


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"decay": "linear", "objective": "missed"},
            UsageError,
            "objective 'missed' needs exponential decay",
        ),
        ({"decay": "linear", "order": "shuffled"}, UsageError, "need order 'fixed'"),
        ({"decay": "linear", "update_costs": 1.0}, UsageError, "update costs need exponential decay"),
        ({"decay": "liner"}, UsageError, "unknown decay 'liner': did you mean 'linear'"),
        ({"decay": ["linear"]}, InputError, "decay has 1 names for 2 items"),
        ({"decay": ["linear", 3]}, UsageError, "decay must be a name"),
        ({"decay": Linear([1.0, 2.0, 3.0])}, InputError, "decay has parameters for 3 items, there are 2"),
    ],
)
def test_wrong_decay(options: dict[str, object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        allocate([1.0, 2.0], 3.0, **options)  # type: ignore[arg-type]


def test_one_step_for_all() -> None:
    plan = allocate([1.0, 1.0], 0.6, decay=Geometric(0.5))
    assert plan.spend == pytest.approx(0.6)
