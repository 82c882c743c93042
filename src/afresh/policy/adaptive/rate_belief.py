"""The belief about each item's rate: the probability p of each rate of a log-spaced grid, a row per item.

A poll multiplies the row by its likelihood: e^{−E} if it found no change and 1−e^{−E} if it found one, where
E is the number of changes expected at each rate. An item's own rate contributes at most ln 1/ε to E, because
even the busiest item is silent now and then. Rates may change. The model assumes that after a mean time H an
item gets a new rate, drawn from the prior. So after a poll p ← (1−ϱ)·p + ϱ·prior with ϱ = 1−e^{−τ/H}, where τ
is the time since the previous poll: old evidence fades, and no item is ever believed to be dead. The prior
has no parametric form. EM learns it from all items, with a small share of an even distribution mixed in.

Where the age of an item at its first look is known, the prior is that of its class of ages (``age_priors``).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from afresh.policy.adaptive.age_priors import FLAT, AgePriors, fit_prior
from afresh.policy.adaptive.row_products import row_products
from afresh.rates.likelihood import log_likelihood
from afresh.rates.poll_table import PollTable
from afresh.values.arrays import Bools, Float64s, Ints

DECADES_BELOW, DECADES_ABOVE, PER_OCTAVE = 3.0, 2.0, 1  # the grid around the mean frequency of polls
PROPER = math.ceil((DECADES_BELOW + DECADES_ABOVE) * math.log2(10.0) * PER_OCTAVE) + 1  # rates on the grid
REDRAWN = 300.0  # H in mean polling intervals, at least
LASTS = 3.0  # H is at least this many times the time for which items have been watched
SILENT = 0.02  # ε: the probability that a poll finds nothing, however high the rate is
ROWS_ENOUGH = 20_000  # items to which the prior is fitted
LEAST = 1e-30
BLOCK = 65_536  # items at a time, because all of many items in double precision would take gigabytes

Posteriors = npt.NDArray[np.float32]


class RateBelief:
    """The belief about each item's rate.
    ``rates`` is the grid, ``prior`` the probability of each of its rates over all items, ``ages`` the priors
    of items of known ages, ``posterior`` the belief with a row per item. ``horizon`` is the mean time for
    which an item keeps its rate, ``frequency`` the mean number of polls of an item per unit of time.
    ``common`` is the prior that several policies learned together, and how many items it counts as.

    >>> belief = RateBelief(2, frequency=1.0)
    >>> for _ in range(50):
    ...     belief.learn(np.array([0, 1]), np.ones(2), np.array([True, False]), belief.finding(np.ones(2)))
    >>> fast, slow = belief.mean(np.array([0, 1]))
    >>> bool(fast > 3.0), bool(slow < 0.2)
    (True, True)
    """

    def __init__(self, items: int, frequency: float, slowest: float | None = None) -> None:
        lowest = frequency * 10.0**-DECADES_BELOW
        more = 0.0 if slowest is None else max(np.ceil(np.log2(lowest / slowest)), 0.0)
        steps = np.arange(PROPER + int(more * PER_OCTAVE))
        self.rates: Float64s = lowest * np.exp2(steps / PER_OCTAVE - more)
        self.horizon = REDRAWN / frequency
        self.prior: Float64s = initial_prior(self.rates)
        self.ages = AgePriors(items)
        self.common: tuple[Float64s, float] | None = None
        self.posterior: Posteriors = np.tile(self.prior.astype(np.float32), (items, 1))
        self.polled: Bools = np.zeros(items, dtype=bool)
        self.polls: Ints = np.zeros(items, dtype=np.int64)  # of each item

    def extend_horizon(self, watched_for: float) -> None:
        """Raise the horizon to ``LASTS`` times the time for which items were watched, if that is more."""
        self.horizon = max(self.horizon, LASTS * watched_for)

    def posteriors(self, items: Ints) -> Float64s:
        """Return the posteriors of these items, in double precision."""
        return self._rows(items).astype(np.float64)

    def _rows(self, items: Ints) -> Posteriors:
        # Rate by rate in memory, like all matrices with a row per item and a column per rate: NumPy's
        # innermost loop then runs over the many items and not over the few rates.
        return np.asfortranarray(self.posterior.take(items, axis=0))

    def posteriors_after(self, items: Ints, elapsed: Float64s) -> Posteriors:
        """Return the posteriors at a time ``elapsed`` after the last polls, when rates may have changed.

        A rate that changed did so after half of the time on average, so only half of the prior is mixed in.
        So even an item that seems to change too often to be worth a poll is polled again in the end."""
        redrawn = (-0.5 * np.expm1(-elapsed / self.horizon)).astype(np.float32)[:, None]
        rows = self._rows(items)
        towards_prior = self.prior_of(items).astype(np.float32) - rows
        towards_prior *= redrawn
        rows += towards_prior
        return rows

    def prior_of(self, items: Ints) -> Float64s:
        """Return the prior of each of these items (row), or a single row if it is the same for all items."""
        table = self.ages.table
        if table is None:
            return self.prior
        # Rate by rate in memory, like ``_rows``: mixing both layouts takes twice as long.
        return np.asarray(table.T.take(self.ages.table_rows(items, self.rates), axis=1).T)

    def mean(self, items: Ints) -> Float64s:
        if items.size <= BLOCK:
            return np.asarray(row_products(self.posteriors(items), self.rates))
        return np.concatenate([self.mean(items[i : i + BLOCK]) for i in range(0, items.size, BLOCK)])

    def expected(self, elapsed: Float64s) -> Float64s:
        """Return λτ, the changes expected in each time τ of ``elapsed`` (row) at each rate λ (column)."""
        return np.asarray((self.rates[:, None] * elapsed).T)

    def change_chance(self, elapsed: Float64s) -> Float64s:
        """Return 1−e^{−λτ}, the probability of a change in each time τ (row) at each rate λ (column).

        If c is that of λ, then c·(2−c) is that of 2λ, the rate an octave above. So the exponential function
        is computed for the rates of the lowest octave only. Rounding errors are not amplified by this step.
        """
        chance = np.empty((self.rates.size, elapsed.size))
        chance[:PER_OCTAVE] = -np.expm1(-self.rates[:PER_OCTAVE, None] * elapsed)
        for below, above in zip(chance[:-PER_OCTAVE], chance[PER_OCTAVE:], strict=True):
            np.subtract(2.0, below, out=above)
            above *= below
        return chance.T

    def finding(self, elapsed: Float64s) -> Float64s:
        """Return the probability at each rate λ that a poll after τ finds a change: (1−ε)(1−e^{−λτ}).

        It is at most 1−ε (``SILENT``), so a poll that finds nothing changes the odds between two rates by
        at most a factor 1/ε: the item may have become slower, or it only pauses (a holiday, an outage).
        """
        return (1.0 - SILENT) * self.change_chance(elapsed)

    def learn(
        self,
        items: Ints,
        elapsed: Float64s,
        changed: Bools,
        finding: Float64s,
        other_evidence: Float64s | float = 0.0,
    ) -> None:
        """Learn from one poll of each item, a time ``elapsed`` after its previous poll.

        ``finding`` is the probability at each rate that the poll finds a change, ``other_evidence`` the
        log-likelihood at each rate of notices and of what the source stated. Both have a row per item.
        """
        likelihood = np.where(changed[:, None], finding, 1.0 - finding)
        if np.ndim(other_evidence):
            likelihood *= np.exp(other_evidence - np.max(other_evidence, axis=1, keepdims=True))
        before = self._rows(items)
        rows = before * likelihood
        total = rows.sum(axis=1, keepdims=True)
        # A result that no rate of the grid can explain (a change in a time of 0) teaches nothing.
        rows = np.where(total > LEAST, rows / np.maximum(total, LEAST), before)
        stays = np.exp(-elapsed / self.horizon)[:, None]
        self.posterior[items] = stays * rows + (1.0 - stays) * self.prior_of(items)
        self.polled[items] = True
        self.polls[items] += 1

    def learn_age(self, items: Ints, age: Float64s) -> None:
        """Learn from the ages of items that were copied for the first time: their belief is the prior of
        their class of ages. They do not count as polled, so they teach the priors nothing yet."""
        if self.ages.table is None:
            self._use_priors(self.prior, self.ages.expected_from(self.prior, self.rates))
        self.ages.set_ages(items, age)
        self.posterior[items] = self.prior_of(items)

    def forget(self, items: Ints) -> None:
        """Forget what was learned of these items: their belief is the prior again."""
        self.ages.forget(items)
        self.posterior[items] = self.prior_of(items)
        self.polled[items], self.polls[items] = False, 0

    def refit(self, alive: Bools) -> None:
        """Fit the prior to all polled items, and multiply every posterior by new prior/old prior. If ages are
        known, the priors of their classes are fitted too."""
        use = np.flatnonzero(self.polled & alive)
        if use.size == 0:
            if self.common is not None:
                prior = self.common[0]
                has_ages = self.ages.table is not None
                self._use_priors(prior, self.ages.expected_from(prior, self.rates) if has_ages else None)
            return
        polled, use = use.size, use[:: -(-use.size // ROWS_ENOUGH)]
        sample = self.posterior[use].astype(np.float64)
        if self.ages.any_known:
            rows = self.ages.table_rows(use, self.rates)
            prior, table = self.ages.fit(rows, sample, self.prior, self.rates)
            table[0] = self._with_common(table[0], polled)
            self._use_priors(self._with_common(prior, polled), table)
        else:
            self._use_priors(self._with_common(fit_prior(sample, self.prior), polled), None)

    def _with_common(self, prior: Float64s, polled: int) -> Float64s:
        """Return a prior that was learned from ``polled`` items, drawn towards the common one."""
        if self.common is None:
            return prior
        common, items = self.common
        return np.asarray((polled * prior + items * common) / (polled + items))

    def own_prior(self, alive: Bools, most: int) -> tuple[Float64s, int]:
        """Return a tuple (prior, n) that the n polled items suggest; at most ``most`` of them are used."""
        use = np.flatnonzero(self.polled & alive)
        if use.size == 0:
            return self.prior.copy(), 0
        some = use[:: -(-use.size // most)]
        before = self.prior_of(some)
        # Beliefs as they would be with the prior of all items, whatever the ages of these items.
        sample = self.posterior[some] / before * self.prior
        sample /= np.maximum(sample.sum(axis=1, keepdims=True), LEAST)
        return fit_prior(sample, self.prior), use.size

    def _use_priors(self, prior: Float64s, table: Float64s | None) -> None:
        """Use another prior of all items, and another ``table`` of ``ages``: multiply every posterior by new
        prior/old prior."""
        before = self.prior if self.ages.table is None else self.ages.table
        ratio = ((prior if table is None else table) / before).astype(np.float32)
        for begin in range(0, len(self.posterior), BLOCK):
            some = self.posterior[begin : begin + BLOCK]
            items = np.arange(begin, begin + len(some))
            some *= ratio if ratio.ndim == 1 else ratio[self.ages.table_rows(items, self.rates)]
            some /= np.maximum(some.sum(axis=1, keepdims=True), np.float32(LEAST))
        self.prior, self.ages.table = prior, table

    def reset(self, rates: Float64s, prior: Float64s) -> None:
        """Use another grid of rates; all items start again from this prior."""
        self.rates, self.prior = rates.copy(), prior.copy()
        self.ages.table = self.common = None
        self.posterior = np.tile(prior.astype(np.float32), (len(self.posterior), 1))

    def grow(self, items: int) -> None:
        """Add new items, whose belief is the prior."""
        prior = self.prior if self.ages.table is None else self.ages.table[0]
        self.posterior = np.concatenate([self.posterior, np.tile(prior.astype(np.float32), (items, 1))])
        self.polled = np.concatenate([self.polled, np.zeros(items, dtype=bool)])
        self.polls = np.concatenate([self.polls, np.zeros(items, dtype=np.int64)])
        self.ages.grow(items)


def initial_prior(rates: Float64s) -> Float64s:
    """Return the prior before any poll: even on the upper ``PROPER`` rates, very small on the rates below.
    If the rates below had the same probability, half of all items would be believed static before the first
    refit, and all their changes would be attributed to shocks of their families.

    >>> RateBelief(0, 1.0, slowest=1e-8).prior.round(4)[[0, -18, -1]]
    array([0.0001, 0.0555, 0.0555])
    """
    below = np.arange(rates.size) < rates.size - PROPER
    even = np.where(below, FLAT / max(int(below.sum()), 1), 1.0)
    even[~below] *= (1.0 - even[below].sum()) / int((~below).sum())
    return even


EVEN_ITEMS = 20.0  # the even prior counts as much as this many items against the learned prior
FINER = 8  # ``rate_interval`` divides each step of the grid into this many


def density_of_guess(rates: Float64s, guess: float, shape: float) -> Float64s:
    """Return how probable each of ``rates``, whose steps are equal in their logarithm, is by a ``guess`` that
    counts as much as ``shape`` changes. If all rates are far above the guess, the lowest is the likeliest.

    >>> density_of_guess(np.array([1.0, 2.0, 4.0]), 1e-9, 0.5).tolist()
    [1.0, 0.0, 0.0]
    """
    log = shape * (np.log(rates / guess) - rates / guess)
    density = np.exp(log - log.max())
    return np.asarray(density / density.sum())


def rate_interval(
    belief: RateBelief,
    polls: PollTable,
    *,
    level: float = 0.9,
    of_items: int = 1,
    guess: float = 0.0,
    guess_shape: float = 0.5,
    guess_doubt: float = 0.5,
) -> tuple[float, float, float]:
    """Return a tuple (median, low, high): the rate of one item is in [low, high] with probability ``level``.
    ``polls`` are the polls of this item alone; stamps, counts and weights count as in ``afresh estimate``
    (``rates.likelihood``). The prior was learned from ``of_items`` items. A ``guess`` of the rate (0: none)
    counts as much as ``guess_shape`` changes, and it is wrong with probability ``guess_doubt``.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> belief, one = RateBelief(1, frequency=1.0), np.zeros(20, dtype=int)
    >>> none = polls_from_intervals([], [], items=1)
    >>> [float(f"{each:.2g}") for each in rate_interval(belief, none)]
    [0.36, 0.0013, 99.0]
    >>> half = polls_from_intervals(np.ones(20), np.arange(20) > 9, item=one)
    >>> [float(f"{each:.2g}") for each in rate_interval(belief, half)]
    [0.67, 0.37, 1.1]
    """
    steps = (np.arange(belief.rates.size * FINER) - 0.5 * (FINER - 1)) / FINER
    rates = belief.rates[0] * np.exp2(steps / PER_OCTAVE)
    prior = (of_items * belief.prior + EVEN_ITEMS * initial_prior(belief.rates)) / (of_items + EVEN_ITEMS)
    prior = np.repeat(prior, FINER) / FINER
    if guess > 0:
        prior = guess_doubt * prior + (1.0 - guess_doubt) * density_of_guess(rates, guess, guess_shape)
    log = np.log(prior)
    if polls.size:
        log += log_likelihood(polls, rates)[0]
    mass = np.exp(log - log.max())
    edges = np.log(belief.rates[0]) + np.log(2.0) * (np.arange(rates.size + 1) / FINER - 0.5) / PER_OCTAVE
    ends = np.array([0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level])
    found = np.exp(np.interp(ends, np.r_[0.0, np.cumsum(mass) / mass.sum()], edges))
    return float(found[0]), float(found[1]), float(found[2])
