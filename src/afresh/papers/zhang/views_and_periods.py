"""Zhang, Tang, Yang & Li 2007, §4 (the rate of a view) and step 3 of §3 (sharp changes), on simulated pages.

§4: a view changes when one of its base data does. If these change independently, as Poisson processes, so
does the view, with the sum of their rates. Here the changes of R and S are simulated, those of V1 are both of
them, and its rate and the gaps between its changes are compared with the claim.

Step 3: |λ̂_i − λ̂_{i−1}| > k·mean(λ̂) marks a sharp change, with k from 0.1 to 0.3. SAA estimates the rate of
simulated pages ten times one after another. Half of the pages are steady, the others change fourteen times as
often from the sixth estimate on. A rule is good if it marks the jump of the others and nothing else.
"""

from __future__ import annotations

import numpy as np

from afresh.papers.report import Check, Section, corrected_check
from afresh.papers.zhang.simulated_pages import SEED, simulate_saa
from afresh.rates.change_points import change_points
from afresh.rates.poisson_check import check_items
from afresh.rates.poll_table import PollTable
from afresh.rates.sharp_changes import find_sharp_changes
from afresh.rates.views import ViewGraph
from afresh.values.arrays import Bools, Float64s, Ints

_VIEWS, _DAYS, _R, _S = 1000, 60.0, 0.2, 0.5
_PAGES, _ESTIMATES, _JUMP, _FACTOR = 300, 10, 5, 14.0


def section_4() -> Section:
    """Return the checks of a view over two base data that change independently."""
    rng = np.random.default_rng(SEED)
    rate = float(ViewGraph.of(["V1", "V1"], ["R", "S"]).rates({"R": _R, "S": _S})[0])
    item, time = _changes(rng, _R)
    other, later = _changes(rng, _S)
    item, time = np.concatenate([item, other]), np.concatenate([time, later])
    observed = item.size / (_VIEWS * _DAYS)
    checks = check_items(item, time)
    fits = 100 * float(np.mean(checks.p_value >= 0.05))
    alone = 1 - np.exp(-_R)
    return Section.of(
        "§4: the rate of a view is the sum of the rates of its base data",
        Check("V1 over R and S, changes a day", f"{_R + _S:.2f}", rate),
        Check("the same, counted in simulated changes", f"{_R + _S:.2f}", observed),
        Check("simulated views whose changes look Poisson", "> 93", fits, "%"),
        Check("chance that V1 is stale after a day / that R is", "> 1", (1 - np.exp(-rate)) / alone),
        note=f"{_VIEWS} views over R ({_R:g} changes a day) and S ({_S:g}), {_DAYS:g} days, seed {SEED}. The "
        "sum holds only for base data that change independently: a view over two that always change together "
        "changes as often as one of them.",
    )


def _changes(rng: np.random.Generator, rate: float) -> tuple[Ints, Float64s]:
    """Return a tuple (view, time) of the simulated Poisson changes of one base of each view."""
    number = rng.poisson(rate * _DAYS, _VIEWS)
    return np.repeat(np.arange(_VIEWS), number), rng.uniform(0, _DAYS, int(number.sum()))


def step_3() -> Section:
    """Return the checks of the paper's rule for sharp changes, and of the rules of afresh."""
    rng = np.random.default_rng(SEED)
    rates = np.ones((2 * _PAGES, _ESTIMATES))
    rates[_PAGES:, _JUMP:] = _FACTOR
    found = simulate_saa(rates.ravel(), 1.0, rng).rate.reshape(rates.shape)
    by_k = {k: _marked(found, k, 0.0) for k in (0.1, 0.3)}
    errors = _marked(found, 0.3, 0.45)
    polls = _polls(rng, rates)
    sharp = find_sharp_changes(polls)
    marks = np.zeros(rates.shape, dtype=bool)
    marks.ravel()[np.unique(sharp.poll // 7)] = True
    chance = "estimates from seven polls differ by more than k times their mean by chance alone"
    return Section.of(
        "§3, step 3: sharp changes of the rate",
        *(
            corrected_check(
                f"steady pages with a mark, k = {k:g}", "0", _wrong(by_k[k]), "1.0e2", chance, "%"
            )
            for k in by_k
        ),
        Check("jumped pages with a mark at the jump, k = 0.3", "> 90", _right(by_k[0.3]), "%"),
        Check("steady pages with a mark, rule of afresh on polls", "< 1", _wrong(marks), "%"),
        Check("jumped pages with a mark at the jump, on polls", "> 90", _right(marks), "%"),
        note=f"{_PAGES} steady pages and {_PAGES} that change {_FACTOR:g} times as often from the sixth of "
        "ten estimates on. The paper states no share; a steady page should have no mark. If a difference "
        f"must also exceed twice its standard error (45 % of an estimate), {_wrong(errors):.0f} % of the "
        f"steady pages have a mark and {_right(errors):.0f} % of the jumps are marked. The rule on polls "
        "looks at the 70 polls themselves (rates/sharp_changes.py).",
    )


def _marked(found: Float64s, k: float, error: float) -> Bools:
    """Return which estimates of which pages the paper's rule marks; ``error`` is their relative error."""
    marks = np.zeros(found.shape, dtype=bool)
    for page, estimates in enumerate(found):
        marks[page, change_points(range(_ESTIMATES), estimates, k, errors=error * estimates).marks] = True
    return marks


def _wrong(marks: Bools) -> float:
    """Return the share of steady pages with a mark, in percent."""
    return 100 * float(np.mean(marks[:_PAGES].any(axis=1)))


def _right(marks: Bools) -> float:
    """Return the share of pages whose jump has a mark, at the right estimate or one beside it, in percent."""
    return 100 * float(np.mean(marks[_PAGES:, _JUMP - 1 : _JUMP + 2].any(axis=1)))


def _polls(rng: np.random.Generator, rates: Float64s) -> PollTable:
    """Return seven polls for each estimate, two for each change that is expected before the jump."""
    each = np.repeat(rates, 7, axis=1).ravel()
    changed = rng.random(each.size) < -np.expm1(-each * 0.5)
    item = np.repeat(np.arange(len(rates)), 7 * _ESTIMATES)
    return PollTable(item, np.full(each.size, 0.5), changed, len(rates))
