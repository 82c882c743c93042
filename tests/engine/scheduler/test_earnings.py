"""Money in the loop: polls are made as long as they pay, and what never pays is left alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.scheduler.earnings import MoneyInput, MoneyTerms, apply_money_terms, plan_spending
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import BudgetTable
from afresh.engine.state_names import SHADOW_PRICE
from afresh.money.chosen_budget import choose_budget
from afresh.values.errors import UsageError

SLOW, FAST = 0.5, 50.0
RATES = [SLOW] * 6 + [FAST] * 3


def engine_of(
    site: VirtualSite, folder: Path, *, budget: str = "", benefit: str = 'benefit = "5/s"'
) -> Engine:
    text = f"""
        [budget]
        requests = "200/s"
        price_per_request = 1
        {budget}
        [plan]
        audit_share = 0
        [[source]]
        name = "web"
        allow_private = true
        min_interval = 0
        respect_robots = false
        delay = 0
        concurrency = 8
        {benefit}
    """
    return site.engine(folder, settings=parse_settings(text))


def best(rates: list[float], limit: float | None = None) -> tuple[float, float]:
    """Requests per second and income that are best where the rates are known."""
    plan = choose_budget(rates, 5.0, 1.0, limit=limit)
    return plan.requests, float(plan.net_income.sum())


def past_polls(now_s: float, urls: list[str], rates: list[float]) -> list[Reported]:
    """Polls of the past that tell the rates: a hundred of each page, at a spacing of about its changes."""
    rng = np.random.default_rng(1)
    found = []
    for url, rate in zip(urls, rates, strict=True):
        changed = rng.random(100) < 1.0 - np.exp(-1.0)
        times_s = now_s - 500.0 + np.arange(100) / rate
        found += [Reported(url, when, bool(seen)) for when, seen in zip(times_s, changed, strict=True)]
    return found


def test_the_engine_polls_what_pays_and_leaves_the_futile_alone(tmp_path: Path) -> None:
    # Each on a host of its own: pages of one folder would be thought to change together.
    with VirtualSite(RATES, hosts=len(RATES)) as site, engine_of(site, tmp_path) as engine:
        engine.add(site.urls())
        assert engine.observe(past_polls(site.time.now_s(), site.urls(), RATES)).taken == 100 * len(RATES)
        engine.run(for_s=6)
        found = engine.status().money
        asked = np.array([sum(url.endswith(f"/{page}") for _, url in site.requests) for page in range(9)])
        reasons = engine.why(site.urls()[-1]).reasons
    requests_per_s, income_per_s = best(RATES)
    assert found is not None
    assert found.futile == 3
    assert found.price == 0
    assert found.requests_per_s == pytest.approx(requests_per_s, rel=0.4)
    assert found.income_per_s == pytest.approx(income_per_s, rel=0.4)
    assert asked[6:].max() <= 2  # a first copy, and hardly a look after it
    # A limit of 200 a second was there to be used.
    assert asked[:6].sum() / 6 == pytest.approx(requests_per_s, rel=0.6)
    assert any("futile: it changes too fast for its cost" in words for words in reasons)


def test_why_says_of_every_item_what_status_counts(tmp_path: Path) -> None:
    with VirtualSite(RATES, hosts=len(RATES)) as site, engine_of(site, tmp_path) as engine:
        engine.add(site.urls())
        engine.observe(past_polls(site.time.now_s(), site.urls(), RATES))
        engine.run(for_s=4)
        found, whys = engine.status(), [engine.why(url) for url in site.urls()]
    words = [" ".join(why.reasons) for why in whys]
    assert found.money is not None
    assert found.money.futile == sum("futile" in each for each in words)
    assert found.money.dropped == found.dropped == sum("dropped" in each for each in words)
    # No limit binds: a larger budget would change nothing, and what pays is polled.
    assert not any("budget" in each.replace("the budget, or an engine", "") for each in words)
    for why in whys:
        assert why.threshold == 1.0
        assert math.isinf(why.interval_s) == any("futile" in each for each in why.reasons)
        assert math.isfinite(why.next_s)  # that of a futile item is a rare review


def test_what_pays_beyond_the_limit_is_dropped_and_not_futile(tmp_path: Path) -> None:
    urls = [f"https://{name}.test/" for name in "ab"]
    site = VirtualSite()
    with engine_of(site, tmp_path, budget='money = "0.001/s"') as engine:
        engine.add(urls)
        engine.observe(past_polls(site.time.now_s(), urls, [0.01, 0.5]))
        engine.store.state.set({SHADOW_PRICE: b"50"})  # a poll of the second is worth 10 at most
        found, words = engine.status(), " ".join(engine.why(urls[1]).reasons)
    assert found.dropped == 1
    assert found.money is not None
    assert found.money.futile == 0
    assert "dropped: a poll would pay, but others pay more" in words
    assert "or a larger budget it would be polled" in words


def test_the_limit_of_money_is_kept_and_priced(tmp_path: Path) -> None:
    with VirtualSite([SLOW] * 6) as site, engine_of(site, tmp_path, budget='money = "2/s"') as engine:
        engine.add(site.urls())
        engine.observe(past_polls(site.time.now_s(), site.urls(), [SLOW] * 6))
        engine.run(for_s=6)
        found = engine.status().money
        asked_s = [time_s for time_s, _ in site.requests]
        assert engine.store.ledger.total(0.0, 1e12).money == len(asked_s)
    assert found is not None
    assert found.money_per_s == pytest.approx(2.0, rel=0.01)
    assert found.price > 0
    # What a request costs is known when it is over; the first four were asked for at once.
    assert site.most_over_budget(2.0, jitter_s=0.5) <= 4
    assert asked_s[-1] - asked_s[0] <= 6 + 4


def test_items_of_a_source_that_earns_nothing_are_futile(tmp_path: Path) -> None:
    text = """
        [budget]
        price_per_request = 1
        [[source]]
        name = "web"
        benefit = "5/s"
        [[source]]
        name = "other"
    """
    with make_engine(parse_settings(text), tmp_path, seed=1) as engine:
        engine.add(["https://a.test/1"])
        engine.add(["https://b.test/1", "https://b.test/2"], source="other")
        found = engine.status().money
        assert found is not None
        assert found.futile >= 2
        assert any("its source has no benefit" in words for words in engine.why("https://b.test/1").reasons)


def test_what_is_chosen_is_what_the_theory_chooses(tmp_path: Path) -> None:
    with engine_of(VirtualSite(), tmp_path) as engine:
        engine.add([f"https://a.test/{n}" for n in range(50)], weight=2.0)
        policy = restore_scheduler(engine.store, engine.settings, engine.store.plan.columns(), 1e9).policy
        names, poll_costs = engine.store.plan.names(), PollCosts()
        given = MoneyInput(engine.settings, names, poll_costs)
        apply_money_terms(policy, given)
        found = plan_spending(policy, given)
        rates = Forecast(policy).median_rates(np.arange(50))
        plan = choose_budget(rates, 10.0, 1.0, most_requests=200.0)
        thrice = plan_spending(policy, given, scale=3.0)
        third = choose_budget(rates, 10.0, 1.0, most_requests=200.0 / 3.0)
    assert found is not None
    assert (found.futile, found.dropped, found.price) == (int(plan.futile.sum()), 0, 0.0)
    assert found.requests_per_s == pytest.approx(plan.requests)
    assert found.money_per_s == pytest.approx(plan.money)
    assert found.income_per_s == pytest.approx(float(plan.net_income.sum()))
    assert thrice is not None
    assert thrice.money_per_s == pytest.approx(3 * third.money)
    assert thrice.requests_per_s == pytest.approx(200.0)
    assert policy.money.break_even_value == 1.0


def test_a_poll_of_a_bulk_takes_its_part_of_the_request() -> None:
    poll_costs = PollCosts()
    for number in range(1000):
        poll_costs.add("rows", 1 if number % 100 == 0 else 0, 50, 0.001)
    assert list(PollCosts.unpack(poll_costs.pack()).mean("rows")) == pytest.approx([0.01, 50, 1e-3], rel=0.1)


def test_a_poll_holds_up_the_others_for_the_longest_of_its_debts() -> None:
    budget = BudgetTable.model_validate(
        {"requests": "10/s", "bytes": "1KB/s", "seconds": "6m/h", "money": "1/s"}
        | {"price_per_second": 0.5, "price_per_gb": 1e6}
    )
    terms = MoneyTerms(*(np.array([value]) for value in (0.0, 0.0, 1.0, 300.0, 0.04, 0.0)))
    assert terms.money(budget) == pytest.approx([0.32])
    assert terms.paid_off_s(budget) == pytest.approx([0.4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[source]]\nname = "w"\nbenefit = "1/d"', "polls cost nothing, so that no budget is best"),
        ('[[source]]\nname = "w"\nbenefit = 5', "benefit is 5: money per time, such as"),
        ('[[source]]\nname = "w"\nstale_cost = "much"', "stale_cost is 'much': money per time"),
        ('[[source]]\nname = "w"\nbenefits = "1/d"', "unknown setting 'benefits'"),
    ],
)
def test_wrong_money_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_settings(text)


def test_the_cost_of_updates_makes_polls_rarer_and_changing_pages_futile(tmp_path: Path) -> None:
    """As `choose_budget` plans it: a page that pays without update costs may be futile with them."""
    rates = [0.5] * 4 + [3.0] * 4
    found, intervals_s = [], []
    for number, update in enumerate((0.0, 2.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        own = f'benefit = "5/s"\nupdate_cost = {update}'
        with (
            VirtualSite(rates, hosts=len(rates)) as site,
            engine_of(site, folder, benefit=own) as engine,
        ):
            engine.add(site.urls())
            engine.observe(past_polls(site.time.now_s(), site.urls(), rates))
            found.append(engine.status().money)
            intervals_s.append([engine.why(url).interval_s for url in site.urls()])
            reasons = " ".join(engine.why(site.urls()[-1]).reasons)
    free, dear = found
    assert free is not None
    assert dear is not None
    assert (free.futile, dear.futile) == (0, 4)
    assert "futile" in reasons
    assert np.isinf(intervals_s[1][4:]).all()
    plan = choose_budget([0.5], 5.0, 1.0, update_cost=2.0)
    assert np.mean(intervals_s[1][:4]) == pytest.approx(float(plan.interval[0]), rel=0.4)
    assert np.mean(intervals_s[1][:4]) > 1.05 * np.mean(intervals_s[0][:4])
    assert dear.income_per_s < free.income_per_s


@pytest.mark.parametrize("decay", ["linear", "weibull:2"])
def test_a_stated_decay_decides_when_a_poll_pays(tmp_path: Path, decay: str) -> None:
    """As `choose_budget` plans it: intervals and the income expected follow the stated decay."""
    rates = [0.5] * 4
    found, intervals_s = [], []
    for number, stated in enumerate(("", f'decay = "{decay}"')):
        folder = tmp_path / str(number)
        folder.mkdir()
        own = f'benefit = "5/s"\n{stated}'
        with VirtualSite(rates, hosts=4) as site, engine_of(site, folder, benefit=own) as engine:
            engine.add(site.urls())
            engine.observe(past_polls(site.time.now_s(), site.urls(), rates))
            found.append(engine.status().money)
            intervals_s.append(np.mean([engine.why(url).interval_s for url in site.urls()]))
    plans = [choose_budget([0.5], 5.0, 1.0, decay=each) for each in ("exponential", decay)]
    for interval_s, plan in zip(intervals_s, plans, strict=True):
        assert interval_s == pytest.approx(float(plan.interval[0]), rel=0.25)
    assert intervals_s[1] / intervals_s[0] == pytest.approx(
        float(plans[1].interval[0] / plans[0].interval[0]), rel=0.1
    )
    incomes = [0.0 if money is None else money.income_per_s for money in found]
    assert incomes == pytest.approx([4 * float(plan.net_income[0]) for plan in plans], rel=0.25)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('decay = "linear"', "decay says what copies earn over time: give benefit or stale_cost too"),
        ('benefit = "1/s"\ndecay = "weibul:2"', "unknown decay 'weibul': did you mean 'weibull'"),
        ('benefit = "1/s"\ndecay = "weibull"', "weibull needs a shape, such as 'weibull:0.8'"),
        ('benefit = "1/s"\ndecay = "weibull:-1"', "decay"),
        (
            'benefit = "1/s"\ndecay = "geometric"',
            "an engine knows exponential, linear, weibull, gamma, lomax",
        ),
        ('benefit = "1/s"\nobjective = "age"\ndecay = "linear"', "the objective is age"),
        ('benefit = "1/s"\ndecay = 3', "decay"),
    ],
)
def test_a_decay_that_cannot_be_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_settings(f'[budget]\nprice_per_request = 1\n[[source]]\nname = "web"\n{text}')
