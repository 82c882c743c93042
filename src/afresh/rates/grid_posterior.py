"""The posterior on a grid of some 40 log-spaced rates: exact evidence of any kind, in any order.

State: the log-likelihood of each item's polls at the grid's rates, and priors on the same grid, learned over
the items without assuming a form (``grid_prior``). Between the points the log posterior is a cubic in ln λ:
intervals do not snap to the grid. Where many polls make the posterior much narrower than a cell, the
log-likelihood is taken anew at closer points (``sharp``).

The rate is the posterior mean under the learned prior. The interval trusts that prior less: where it has
found, say, two kinds of items it is sure of them, and its intervals cover 99 % instead of 90. So intervals
use a mixture of the learned prior (15 %) and what it was learned from; docs/estimators.md has the coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.gamma_prior import LEAST_MASS, GammaPrior, cell_masses, check_level
from afresh.rates.grid_prior import fit_grid, fit_grid_groups, flat_share
from afresh.rates.likelihood import log_likelihood
from afresh.rates.observations import Float64s, Ints, Polls
from afresh.rates.sharp import POINTS, Sharp, sharp_items

OCTAVES_BELOW, OCTAVES_ABOVE, PER_OCTAVE = 9, 6, 2  # the grid around a prior's mean when none is given
LEARNED_SHARE = 0.15  # of the learned prior in that of the intervals
NODES = 40  # for each item's integral, over the part of the axis that holds its posterior
DEPTH = 14.0  # what lies so far below the maximum (in ln) is left out: 1e−6
ROWS = 2048  # items at a time: they stay in the cache, and a thread has enough to do
_THREADS, _PARTS_FOR_THREADS = 2, 64  # NumPy lets go of the interpreter in most of the work


@dataclass(frozen=True, slots=True)
class GridState:
    """What is believed of every item on a common grid of rates.

    ``log_likelihood`` has a row per item; the priors have one for each kind of item, ``kind`` says which.
    ``log_prior`` serves the rate, ``log_cautious`` the interval; below the grid λ is taken as λ^{tail−1}.
    ``sharp`` are items whose log-likelihood is known at closer points of their own.
    """

    rates: Float64s
    kind: Ints
    log_prior: Float64s
    log_cautious: Float64s
    tail: Float64s
    log_likelihood: Float64s
    sharp: Sharp | None = None


@dataclass(frozen=True, slots=True)
class GridPosterior:
    """Posterior mean and credible interval on a grid of rates.

    >>> from afresh.rates.observations import polls_of
    >>> grid = GridPosterior()
    >>> state = grid.update(grid.start(GammaPrior.of(2.0, 2.0), 1), polls_of(2.0, False))
    >>> grid.rate(state).round(2).tolist()            # Gamma(2, 4)
    [0.5]
    """

    rates: Float64s | None = None
    name = "grid"
    order_free = True
    incremental = True
    consistent = True

    def start(self, prior: GammaPrior, items: int) -> GridState:
        """A Gamma prior laid on the grid; the grid spans 15 octaves around its mean unless given."""
        rates = self.rates
        if rates is None:
            exponents = np.arange(-OCTAVES_BELOW * PER_OCTAVE, OCTAVES_ABOVE * PER_OCTAVE + 1) / PER_OCTAVE
            rates = float(np.median(prior.mean())) * np.exp2(exponents)
        kinds, kind = prior.for_items(items).distinct() if prior.shape.size > 1 else (prior, None)
        weights = _log_density(kinds, rates)
        row = np.zeros(items, dtype=np.int64) if kind is None else kind
        return GridState(rates, row, weights, weights, kinds.shape, np.zeros((items, rates.size)))

    def update(self, state: GridState, polls: Polls) -> GridState:
        """Add the log-likelihood of the polls: bits, counts and credible stamps."""
        table = log_likelihood(polls, state.rates)
        table += state.log_likelihood
        return replace(state, log_likelihood=table, sharp=None)

    def sharpened(self, state: GridState, polls: Polls) -> GridState:
        """The same belief with points of their own for items known closely; ``polls`` are all so far."""
        return replace(state, sharp=sharp_items(polls, state.log_likelihood, state.rates))

    def learned(self, state: GridState, fitted: GammaPrior) -> GridState:
        """The same evidence under priors learned from all items, for each kind of ``fitted`` rows.

        ``fitted`` is the Gamma prior of all items or of each item's group (``prior.fit_gamma``).
        """
        begun = replace(self, rates=state.rates).start(fitted, len(state.log_likelihood))
        gamma = cell_masses(fitted.distinct()[0], state.rates)
        share = np.bincount(begun.kind, minlength=len(gamma)) / max(begun.kind.size, 1)
        flat = flat_share(state.log_likelihood, share @ gamma)
        floor = flat / state.rates.size
        floored = (1.0 - flat) * gamma + floor
        if len(gamma) == 1:
            weights = fit_grid(state.log_likelihood, floored[0])[None]
        else:
            weights = fit_grid_groups(state.log_likelihood, begun.kind, len(gamma), share @ floored)
        cautious = LEARNED_SHARE * weights + (1.0 - LEARNED_SHARE) * floored
        density = np.logaddexp(np.log1p(-flat) + begun.log_prior, np.log(floor))
        return replace(
            begun,
            log_prior=density + np.log(weights / floored),
            log_cautious=density + np.log(cautious / floored),
            log_likelihood=state.log_likelihood,
        )

    def rate(self, state: GridState) -> Float64s:
        """Posterior mean."""
        rate = np.empty(len(state.log_likelihood))

        def mean(rows: slice) -> None:
            axis, density = _posterior(state, rows, state.log_prior)
            value, weight = _weighted(state.rates, axis, density, state.tail[state.kind[rows]])
            rate[rows] = np.einsum("ij,ij->i", value, weight)

        _for_all(rate.size, mean)
        return rate

    def effective_rate(self, state: GridState, time: float) -> Float64s:
        """−ln E[e^{−λt}]/t, the one rate at which a copy survives ``time`` as probably."""
        rate = np.empty(len(state.log_likelihood))

        def survival(rows: slice) -> None:
            axis, density = _posterior(state, rows, state.log_prior)
            value, weight = _weighted(state.rates, axis, density, state.tail[state.kind[rows]])
            rate[rows] = -_log_survival(value * time, weight) / time

        _for_all(rate.size, survival)
        return rate

    def interval(self, state: GridState, level: float) -> tuple[Float64s, Float64s]:
        """Equal-tailed credible interval."""
        below = (1.0 - check_level(level)) / 2.0
        low, high = np.empty(len(state.log_likelihood)), np.empty(len(state.log_likelihood))

        def ends(rows: slice) -> None:
            axis, density = _posterior(state, rows, state.log_cautious)
            tail = state.tail[state.kind[rows]]
            low[rows], high[rows] = _quantiles(state.rates, axis, density, tail, (below, 1.0 - below))

        _for_all(low.size, ends)
        return low, high


def _log_density(prior: GammaPrior, rates: Float64s) -> Float64s:
    """ln of each Gamma's density per cell at the grid's points: a·ln(bλ) − bλ − ln Γ(a) + ln h."""
    from scipy.special import gammaln

    shape, scaled = prior.shape[:, None], prior.rate[:, None] * rates
    step = np.log(rates[1] / rates[0])
    log_density = shape * np.log(scaled) - scaled - gammaln(shape) + np.log(step)
    # Where it underflows, so do the cell's mass and their ratio: the floor is the same.
    return np.asarray(np.maximum(log_density, np.log(LEAST_MASS)))


def _below(axis: Float64s, density: Float64s, slope: Float64s) -> Float64s:
    """Mass below the grid's lowest point, in units of each row's node spacing."""
    spacing = axis[:, 1] - axis[:, 0]
    return np.where(axis[:, 0] == 0.0, density[:, 0] / slope, 0.0) / spacing


def _for_all(items: int, job: Callable[[slice], None]) -> None:
    """``job`` on all items, some rows at a time so that they stay in cache; many items on two threads."""
    parts = [slice(begin, min(begin + ROWS, items)) for begin in range(0, items, ROWS)]
    if len(parts) < _PARTS_FOR_THREADS:
        for rows in parts:
            job(rows)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(job, parts):  # raises what a job raised
            pass


def _posterior(state: GridState, rows: slice, log_prior: Float64s) -> tuple[Float64s, Float64s]:
    """For the rows nodes on the grid's index axis that span each posterior, and its density there."""
    prior = log_prior[state.kind[rows]]
    axis, density = _narrowed(state.log_likelihood[rows] + prior)
    sharp = state.sharp
    if sharp is not None:
        these = slice(*np.searchsorted(sharp.item, (rows.start, rows.stop)))
        local = sharp.item[these] - rows.start
        own, height = _nodes(
            sharp.log_likelihood[these], np.zeros(local.size), np.full(local.size, POINTS - 1.0)
        )
        step = np.log(state.rates[1] / state.rates[0])
        start = (sharp.low[these] - np.log(state.rates[0])) / step
        axis[local] = start[:, None] + own * (sharp.step[these] / step)[:, None]
        height += _cubic(prior[local], axis[local])
        density[local] = np.exp(height - height.max(axis=1, keepdims=True, initial=-np.inf))
    return axis, density


def _narrowed(log_posterior: Float64s) -> tuple[Float64s, Float64s]:
    """For every row nodes on the grid's index axis that span its posterior, and the density there."""
    low, high = (end.astype(np.float64) for end in _span(log_posterior))
    axis, height = _nodes(log_posterior, low, high)
    rows = np.arange(len(log_posterior))
    for _ in range(12):  # each pass halves the span at least: enough for 1/4000 of the first
        first, last = _span(height[rows])
        narrow = last - first <= NODES // 2
        if not np.any(narrow):
            break
        rows, first, last = rows[narrow], first[narrow], last[narrow]
        axis[rows], height[rows] = _nodes(log_posterior[rows], axis[rows, first], axis[rows, last])
    return axis, np.exp(height - height.max(axis=1, keepdims=True))


def _span(height: Float64s) -> tuple[Ints, Ints]:
    """First and last column around what is within ``DEPTH`` of each row's maximum."""
    above = height > height.max(axis=1, keepdims=True) - DEPTH
    columns = height.shape[1]
    first = np.maximum(above.argmax(axis=1) - 1, 0)
    last = np.minimum(columns - above[:, ::-1].argmax(axis=1), columns - 1)
    return first, last


def _nodes(log_posterior: Float64s, low: Float64s, high: Float64s) -> tuple[Float64s, Float64s]:
    """Even nodes from ``low`` to ``high`` on each row's index axis, and the cubic there."""
    axis = low[:, None] + (high - low)[:, None] * (np.arange(NODES) / (NODES - 1))
    return axis, _cubic(log_posterior, axis)


def _cubic(table: Float64s, axis: Float64s) -> Float64s:
    """Each row of the table at the places of ``axis`` on its index axis, by the cubic through 4 points."""
    points = table.shape[1]
    left = np.clip(axis.astype(np.int64) - 1, 0, points - 4)
    x = axis - left
    flat = (left + (np.arange(len(left)) * points)[:, None]).ravel()
    values = table.ravel()
    f0, f1, f2, f3 = (values[flat + k].reshape(x.shape) for k in range(4))
    # Newton's form of the cubic through (0, f0) … (3, f3).
    d1, d2, d3 = f1 - f0, f2 - 2 * f1 + f0, f3 - 3 * (f2 - f1) - f0
    return np.asarray(f0 + x * (d1 + (x - 1) * (d2 / 2 + (x - 2) * (d3 / 6))))


def _weighted(
    rates: Float64s, axis: Float64s, density: Float64s, tail: Float64s
) -> tuple[Float64s, Float64s]:
    """Rates and their probabilities by the trapezoid rule on each row's nodes.

    The first column stands for what lies below the grid, at its mean under the power law.
    """
    step = np.log(rates[1] / rates[0])
    value, weight = (np.empty((len(axis), NODES + 1)) for _ in range(2))
    value[:, 0] = rates[0] * tail / (tail + 1.0)
    value[:, 1:] = rates[0] * np.exp(step * axis)
    weight[:, 0] = _below(axis, density, tail * step)
    weight[:, 1:] = density
    weight[:, [1, -1]] *= 0.5
    weight /= weight.sum(axis=1, keepdims=True)
    return value, weight


def _log_survival(expected: Float64s, weight: Float64s) -> Float64s:
    """ln E[e^{−x}] of each row, right for the smallest and the largest x."""
    changed = -np.einsum("ij,ij->i", np.expm1(-expected), weight)
    with np.errstate(divide="ignore"):
        height = np.log(weight) - expected
    top = height.max(axis=1)
    log_sum = top + np.log(np.exp(height - top[:, None]).sum(axis=1))
    return np.asarray(np.where(changed < 0.5, np.log1p(-np.minimum(changed, 0.5)), log_sum))


def _quantiles(
    rates: Float64s, axis: Float64s, density: Float64s, tail: Float64s, probabilities: tuple[float, float]
) -> list[Float64s]:
    """The rates below which each row has the probabilities, by the trapezoid rule and the power law."""
    step, rows = np.log(rates[1] / rates[0]), np.arange(len(axis))
    below = np.empty_like(density)
    below[:, 0] = first = _below(axis, density, tail * step)
    below[:, 1:] = 0.5 * (density[:, 1:] + density[:, :-1])
    np.cumsum(below, axis=1, out=below)
    out = []
    for probability in probabilities:
        wanted = probability * below[:, -1]
        k = np.clip((below < wanted[:, None]).sum(axis=1), 1, NODES - 1)
        # Within the cell the density is linear: d₀x + (d₁−d₀)x²/2 = what is left.
        left, right = density[rows, k - 1], density[rows, k]
        rest = np.maximum(wanted - below[rows, k - 1], 0.0)
        root = np.sqrt(np.maximum(left * left + 2.0 * (right - left) * rest, 0.0))
        share = np.minimum(2.0 * rest / np.maximum(left + root, np.finfo(float).tiny), 1.0)
        spot = step * (axis[rows, k - 1] + share * (axis[rows, k] - axis[rows, k - 1]))
        lower = wanted < first
        spot[lower] = np.log(wanted[lower] / first[lower]) / tail[lower]
        out.append(np.asarray(rates[0] * np.exp(spot)))
    return out
