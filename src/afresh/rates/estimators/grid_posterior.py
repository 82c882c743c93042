"""An estimator that keeps the posterior of each item's rate λ on a grid of about 40 log-spaced rates.

It uses all kinds of evidence (bits, stamps, counts), in any sequence. The state is the log-likelihood of each
item's polls at the rates of the grid, and priors on the same grid, which are learned from the items without
assuming a form (``grid_prior``). Between the points the log posterior is a cubic in ln λ, so that the ends of
credible intervals are not restricted to grid points.

The estimated rate is the posterior mean under the learned prior. Credible intervals depend less on that
prior, because with the learned prior alone, 90 % intervals cover 99 % if there are two kinds of items. They
use a mixture of the learned prior (15 %) and the prior from which the learning started, called the cautious
prior; see docs/estimators.md.

Sharp items are those whose rate is known more precisely than the spacing of the grid. The error of a cubic
through the grid's points is a share of the log-likelihood, which grows with every poll while its peak becomes
narrower. After some thousand polls this error is as large as one standard deviation. So the log-likelihood of
sharp items is computed again at ``POINTS`` rates, from −``REACH`` to ``REACH`` standard deviations around its
peak, where it is nearly a parabola. Let u = ln λ, let x = λt for each change known only as a bit from a
polling interval t, and let N exact changes be known in a time T. Then slope and curvature in u are

    N − λT + Σ x/(eˣ−1)    and    −λT + Σ [x/(eˣ−1) − x²eˣ/(eˣ−1)²]    (sums over the changes seen as bits).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.estimators.grid_integrals import (
    Nodes,
    PosteriorRows,
    even_nodes,
    interpolate_cubic,
    map_parts,
)
from afresh.rates.likelihood import PollEvidence, best_evidence, log_likelihood
from afresh.rates.log_ratio import check_level
from afresh.rates.poll_table import PollTable
from afresh.rates.priors import grid_prior
from afresh.rates.priors.gamma_prior import LEAST_MASS, GammaPrior, cell_masses
from afresh.rates.segments import Segments
from afresh.values.arrays import Bools, Float64s, Ints

POINTS = 8
REACH = 6.0
CLOSELY = 0.1  # an item is sharp if its standard deviation is below this share of the grid's spacing
NEWTON_STEPS = 8


@dataclass(frozen=True, slots=True)
class SharpItems:
    """The items whose rate λ is known more precisely than the grid's spacing, with their log-likelihoods at
    ``POINTS`` own rates. ``low`` is ln λ of the first of these rates, ``step`` their spacing in ln λ."""

    item: Ints
    low: Float64s
    step: Float64s
    log_likelihood: Float64s

    def between(self, first: int, end: int) -> SharpItems:
        """Return the sharp items from ``first`` to ``end`` − 1."""
        these = slice(*np.searchsorted(self.item, (first, end)))
        return SharpItems(self.item[these], self.low[these], self.step[these], self.log_likelihood[these])


def find_sharp_items(polls: PollTable, table: Float64s, rates: Float64s) -> SharpItems | None:
    """Return the items whose rate is known more precisely than the spacing of the grid, or None.
    ``table`` is the log-likelihood of the same polls at the rates of the grid, ``rates``.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> item = np.zeros(4000, dtype=np.int64)
    >>> polls = polls_from_intervals(np.ones(4000), np.arange(4000) % 4 == 0, item=item)
    >>> grid = np.exp2(np.arange(-6.0, 3.0))
    >>> found = find_sharp_items(polls, log_likelihood(polls, grid), grid)
    >>> top = found.low[0] + found.step[0] * (POINTS - 1) / 2
    >>> bool(np.isclose(top, np.log(-np.log(1 - 0.25))))
    True
    """
    closely = CLOSELY * float(np.log(rates[1] / rates[0]))
    evidence = best_evidence(polls)
    # An exact change contributes 1 to the information on ln λ, a change seen as a bit x²eˣ/(eˣ−1)² < 1.
    bits = evidence.bit if polls.weight is None else np.where(evidence.bit, polls.weight, 0.0)
    information = np.bincount(polls.item, evidence.events + bits, minlength=polls.items)
    maybe = np.flatnonzero(information > closely**-2)
    if maybe.size == 0:
        return None
    known = _Known.of(polls, evidence, maybe)
    start = np.log(rates[table[maybe].argmax(axis=1)])
    top, deviation = known.top(start)
    sharp = (deviation < closely) & (np.abs(top - start) < closely / CLOSELY)
    if not np.any(sharp):
        return None
    low, step = top - REACH * deviation, deviation * (2.0 * REACH / (POINTS - 1))
    # The others are evaluated at their start and dropped below, because their maxima may be at infinity.
    low, step = np.where(sharp, low, start), np.where(sharp, step, 0.0)
    values = np.stack([known.log_likelihood(low + k * step) for k in range(POINTS)], axis=1)
    return SharpItems(maybe[sharp], low[sharp], step[sharp], values[sharp])


@dataclass(frozen=True, slots=True)
class _Known:
    """The evidence of some items: the number N of exact changes (``events``) and their time T (``exposure``),
    and the polling intervals of changes seen as bits. ``of_bits`` is the item of each run of ``bits``."""

    events: Float64s
    exposure: Float64s
    bits: Segments
    of_bits: Ints
    weight: Float64s | float

    @classmethod
    def of(cls, polls: PollTable, evidence: PollEvidence, items: Ints) -> _Known:
        place = np.full(polls.items, -1)
        place[items] = np.arange(items.size)
        row = place[polls.item]
        chosen = row >= 0
        events, exposure = np.zeros(items.size), np.zeros(items.size)
        events += np.bincount(row[chosen], evidence.events[chosen], minlength=items.size)
        exposure += np.bincount(row[chosen], evidence.exposure[chosen], minlength=items.size)
        seen = chosen & evidence.bit
        bits, of_bits = Segments.of(row[seen], polls.elapsed[seen])
        return cls(events, exposure, bits, of_bits, 1.0 if polls.weight is None else polls.weight[seen])

    def top(self, start: Float64s) -> tuple[Float64s, Float64s]:
        """Return a tuple: ln λ at the peak of the log-likelihood, and the standard deviation of ln λ there.
        The peak is found by Newton steps of at most ½ from ``start``."""
        top, curved = start.copy(), np.zeros(start.size)
        for _ in range(NEWTON_STEPS):
            slope, curved = self._slope_and_curvature(top)
            newton = np.where(curved < 0, -slope / np.where(curved < 0, curved, 1.0), np.sign(slope))
            top = top + np.clip(newton, -0.5, 0.5)
        return top, np.where(curved < 0, 1.0 / np.sqrt(np.where(curved < 0, -curved, 1.0)), np.inf)

    def _slope_and_curvature(self, log_rate: Float64s) -> tuple[Float64s, Float64s]:
        passed = np.exp(log_rate) * self.exposure
        slope, curvature = self.events - passed, -passed
        if self.of_bits.size:
            x = np.minimum(self._expected(log_rate), 700.0)  # beyond, both terms are 0
            grown = np.expm1(x)
            hazard = x / grown
            slope[self.of_bits] += self.bits.sums(self.weight * hazard)
            bend = hazard - hazard * hazard * (grown + 1.0)
            curvature[self.of_bits] += self.bits.sums(self.weight * bend)
        return slope, curvature

    def log_likelihood(self, log_rate: Float64s) -> Float64s:
        """Return N·ln λ − λT + Σ ln(1−e^{−λt}), for N exact changes in a time T and changes seen as bits."""
        value = self.events * log_rate - np.exp(log_rate) * self.exposure
        if self.of_bits.size:
            logs = np.log(-np.expm1(-self._expected(log_rate)))
            value[self.of_bits] += self.bits.sums(self.weight * logs)
        return value

    def _expected(self, log_rate: Float64s) -> Float64s:
        return self.bits.spread(np.exp(log_rate[self.of_bits])) * self.bits.values


OCTAVES_BELOW, OCTAVES_ABOVE, PER_OCTAVE = 9, 6, 2  # the default grid around the prior's mean
LEARNED_SHARE = 0.15  # share of the learned prior in the cautious prior that credible intervals use


@dataclass(frozen=True, slots=True)
class GridState:
    """The belief about every item on a common grid of rates λ.
    ``log_likelihood`` has a row per item. The priors have a row per kind of item, and ``kind`` is the row of
    each item's prior. ``log_prior`` is used for the rate, ``log_cautious`` for the credible interval. Below
    the grid the density is proportional to λ^{tail−1}. ``quiet`` marks the items that no poll found changed.
    They may be static, with the prior odds e^``log_odds`` of their kind. ``sharp`` are the sharp items."""

    rates: Float64s
    kind: Ints
    log_prior: Float64s
    log_cautious: Float64s
    tail: Float64s
    log_odds: Float64s
    log_likelihood: Float64s
    quiet: Bools
    sharp: SharpItems | None = None

    def of_items(self, kind: Ints) -> GridState:
        """Return a state with the same priors for other items without polls; ``kind`` is their kind."""
        return replace(
            self,
            kind=kind,
            log_likelihood=np.zeros((kind.size, self.rates.size)),
            quiet=np.ones(kind.size, dtype=bool),
            sharp=None,
        )


@dataclass(frozen=True, slots=True)
class GridPosterior:
    """Estimates the posterior mean and the credible interval of each rate on the grid ``rates``.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> grid = GridPosterior()
    >>> state = grid.update(grid.start(GammaPrior.of(2.0, 2.0), 1), polls_from_intervals(2.0, False))
    >>> grid.rate(state).round(2).tolist()            # Gamma(2, 4)
    [0.5]
    """

    rates: Float64s | None = None
    name = "grid"

    def start(self, prior: GammaPrior, items: int) -> GridState:
        """Return the state of items without polls; the default grid is 15 octaves around the prior's mean."""
        rates = self.rates
        if rates is None:
            exponents = np.arange(-OCTAVES_BELOW * PER_OCTAVE, OCTAVES_ABOVE * PER_OCTAVE + 1) / PER_OCTAVE
            rates = float(np.median(prior.mean())) * np.exp2(exponents)
        kinds, kind = prior.for_items(items).distinct() if prior.shape.size > 1 else (prior, None)
        weights = _log_density(kinds, rates)
        row = np.zeros(items, dtype=np.int64) if kind is None else kind
        never = np.full(len(weights), -np.inf)
        blank, quiet = np.zeros((items, rates.size)), np.ones(items, dtype=bool)
        return GridState(rates, row, weights, weights, kinds.shape, never, blank, quiet)

    def update(self, state: GridState, polls: PollTable) -> GridState:
        """Add the log-likelihood of the polls: bits, counts and credible stamps."""
        table = log_likelihood(polls, state.rates)
        table += state.log_likelihood
        quiet = state.quiet & (polls.changes_per_item() == 0)
        return replace(state, log_likelihood=table, quiet=quiet, sharp=None)

    def sharpen(self, state: GridState, polls: PollTable) -> GridState:
        """Return the same belief with its ``SharpItems`` added; ``polls`` are all polls so far."""
        return replace(state, sharp=find_sharp_items(polls, state.log_likelihood, state.rates))

    def with_learned_priors(self, state: GridState, fitted: GammaPrior, static: float = 0.0) -> GridState:
        """Return the same evidence with priors learned from all items: one per distinct row of ``fitted``.
        ``fitted`` is the Gamma prior of all items or of each item's group (``fit_gamma``). ``static`` is the
        share of items that never change (``fit_static_share``)."""
        started = replace(self, rates=state.rates).start(fitted, len(state.log_likelihood))
        kinds = fitted.distinct()[0]
        gamma, table = cell_masses(kinds, state.rates), state.log_likelihood
        mixture = grid_prior.StaticMixture.of(table, state.quiet, gamma[started.kind])
        shares = mixture.shares(started.kind, len(gamma), static)
        changing = 1.0 - mixture.responsible(shares[started.kind])
        if len(gamma) == 1 and len(table) >= grid_prior.FEWEST_FOR_FORM:
            lognormal, probable = grid_prior.fit_lognormal(table, state.rates, gamma[0], changing)
            density = lognormal.mixed_density(started.log_prior, state.rates, probable)
            started = replace(started, log_prior=density)
            gamma = (1.0 - probable) * gamma + probable * lognormal.cell_masses(state.rates)
        share = np.bincount(started.kind, minlength=len(gamma)) / max(started.kind.size, 1)
        flat = grid_prior.flat_share(table, share @ gamma, changing)
        floor = flat / state.rates.size
        floored = (1.0 - flat) * gamma + floor
        if len(gamma) == 1:
            weights = grid_prior.fit_grid(table, floored[0], changing)[None]
        else:
            weights = grid_prior.fit_grid_groups(table, started.kind, len(gamma), share @ floored, changing)
        cautious = LEARNED_SHARE * weights + (1.0 - LEARNED_SHARE) * floored
        density = np.logaddexp(np.log1p(-flat) + started.log_prior, np.log(floor))
        with np.errstate(divide="ignore"):
            log_odds = np.log(shares) - np.log1p(-shares)
        return replace(
            started,
            log_prior=density + np.log(weights / floored),
            log_cautious=density + np.log(cautious / floored),
            log_odds=log_odds,
            log_likelihood=table,
            quiet=state.quiet,
        )

    def rate(self, state: GridState) -> Float64s:
        return _map_posteriors(state, lambda nodes: [_mean(nodes)])[0]

    def interval(self, state: GridState, level: float) -> tuple[Float64s, Float64s]:
        """Return the equal-tailed credible interval, extended to the estimated rate if that is outside."""
        _, low, high = self.answers(state, level)
        return low, high

    def answers(self, state: GridState, level: float) -> tuple[Float64s, Float64s, Float64s]:
        """Return a tuple (rate, low, high) of arrays, computed in one pass over the posteriors."""
        below = (1.0 - check_level(level)) / 2.0

        def of(nodes: Nodes) -> list[Float64s]:
            rate = _mean(nodes)
            low, high = nodes.interval(below)
            # The mean uses the learned prior, so with few polls it may be outside the cautious interval.
            return [rate, np.minimum(low, rate), np.maximum(high, rate)]

        rate, low, high = _map_posteriors(state, of)
        return rate, low, high


def _mean(nodes: Nodes) -> Float64s:
    return nodes.mean(lambda rate: rate)


def _log_density(prior: GammaPrior, rates: Float64s) -> Float64s:
    """Return a·ln(bλ) − bλ − ln Γ(a) + ln h, the log of the density of each Gamma(a, b) (row) per cell of the
    grid, whose width is h in ln λ."""
    from scipy.special import gammaln

    shape, scaled = prior.shape[:, None], prior.rate[:, None] * rates
    step = np.log(rates[1] / rates[0])
    log_density = shape * np.log(scaled) - scaled - gammaln(shape) + np.log(step)
    # The density has the same floor as the masses of cells, so that their ratio is 1 where both underflow.
    return np.asarray(np.maximum(log_density, np.log(LEAST_MASS)))


def _map_posteriors(state: GridState, of: Callable[[Nodes], list[Float64s]]) -> list[Float64s]:
    """Return the arrays that ``of`` computes from the posteriors, for all items; it is called for parts of
    them. An item gets nodes as its posterior needs them: common, own (narrow) or sharp."""

    def job(part: slice) -> list[Float64s]:
        rows = PosteriorRows(
            state.rates,
            state.log_likelihood[part],
            state.kind[part],
            state.log_prior,
            state.log_cautious,
            state.tail,
            np.where(state.quiet[part], state.log_odds[state.kind[part]], -np.inf),
        )
        nodes, enough = rows.wide()
        found = of(nodes)
        if not np.all(enough):
            _put(found, ~enough, of(rows.narrow(~enough)))
        if state.sharp is not None:
            sharp = state.sharp.between(part.start, part.stop)
            local = sharp.item - part.start
            _put(found, local, of(_sharp_nodes(rows, sharp, state.kind[sharp.item])))
        return found

    return [np.concatenate(column) for column in zip(*map_parts(len(state.log_likelihood), job), strict=True)]


def _put(found: list[Float64s], where: Bools | Ints, better: list[Float64s]) -> None:
    for column, values in zip(found, better, strict=True):
        column[where] = values


def _sharp_nodes(rows: PosteriorRows, sharp: SharpItems, kind: Ints) -> Nodes:
    none = np.zeros(sharp.item.size)
    own, height = even_nodes(sharp.log_likelihood, none, none + (POINTS - 1.0))
    start = (sharp.low - np.log(rows.rates[0])) / rows.step
    axis = start[:, None] + own * (sharp.step / rows.step)[:, None]
    never = np.full(kind.size, -np.inf)  # a sharp item was seen to change, so it is not static
    return rows.on_nodes(kind, axis, height + interpolate_cubic(rows.log_cautious[kind], axis), never)
