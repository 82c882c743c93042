"""Forgetting: give old polls less weight, because the rates of items drift over time.

In a time t the belief Gamma(a, b) about a rate returns towards the prior Gamma(a₀, b₀):
a ← a₀+(a−a₀)e^{−t/H}, and b in the same way. H is the horizon. On a grid of rates, the log-likelihood of a
poll of age t is multiplied by e^{−t/H}. The estimated rates are then those at the time of the latest poll.

Whether to forget, and with which horizon, is decided by how well polls are predicted. Before each poll the
Gamma filter gives the probability of a change. Its score is the logarithm of the probability that it gave to
the result of the poll. Forgetting is used only if both of these hold by ``MARGIN`` standard errors:

- It predicts better than not forgetting.
- Its gain is larger for the polls in their true sequence than for the same polls in a shuffled sequence. If
  rates are steady, the sequence does not matter and this difference is 0 on average, even if the prior is
  wrong. The comparison is needed because forgetting also gains if all items are alike: it returns to the
  prior, which is then a good prediction. But that gain is the same in any sequence.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from afresh.rates.estimators.gamma_filter import belief_after_change
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.values.arrays import Bools, Float64s, Ints

MARGIN = 3.0  # the best of several horizons is tested, so chance alone reached 2.5 in 1 of 30 steady logs
HALVINGS = 7
POLLS_ENOUGH = 100_000  # suffice to decide; if there are more, only every k-th item is used
LATEST = 400  # only this many of the latest polls of an item are used
FEWEST = 4  # items needed to decide, and polls needed of an item
GOLDEN = 0.6180339887498949


def fade(
    shape: Float64s, rate: Float64s, prior: GammaPrior, elapsed: Float64s, horizon: float | Float64s
) -> tuple[Float64s, Float64s]:
    """Return a tuple (shape, rate) of the Gamma belief after a time ``elapsed`` without polls.
    The belief was Gamma(``shape``, ``rate``) and returns towards the prior within the horizon.

    >>> a, b = fade(np.array([5.0]), np.array([9.0]), GammaPrior.of(1.0, 1.0), np.array([np.log(2)]), 1.0)
    >>> a.round(12).tolist(), b.round(12).tolist()
    ([3.0], [5.0])
    """
    keep = np.exp(-elapsed / horizon)
    return prior.shape + (shape - prior.shape) * keep, prior.rate + (rate - prior.rate) * keep


def poll_ages(polls: PollTable, latest: float | None = None) -> Float64s:
    """Return the age of each poll: the time from it to the latest poll of all items. ``latest`` is the time
    of this poll if it may be of an item that is not in the table.
    If the times of the polls are unknown, the age is counted to the latest poll of the same item.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> poll_ages(polls_from_intervals([1.0, 2.0, 4.0, 8.0], [1, 0, 0, 1], item=[0, 0, 0, 1])).tolist()
    [6.0, 4.0, 0.0, 0.0]
    """
    if polls.end is not None:
        return (float(polls.end.max(initial=-np.inf)) if latest is None else latest) - polls.end
    until = np.cumsum(polls.elapsed)
    lasts = np.append(np.flatnonzero(np.diff(polls.item)), polls.size - 1)[: polls.size]
    of_item = np.zeros(polls.items)
    of_item[polls.item[lasts]] = until[lasts]
    return np.asarray(np.maximum(of_item[polls.item] - until, 0.0))


def weigh_by_age(polls: PollTable, horizon: float, latest: float | None = None) -> PollTable:
    """Return the polls with their weights (1 if they have none) times e^{−age/H}, where H is the horizon.
    ``latest`` is as in ``poll_ages``.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> weigh_by_age(polls_from_intervals([1.0, 2.0], [1, 0], item=[0, 0]), 2.0).weight.round(3).tolist()
    [0.368, 1.0]
    """
    weight = np.exp(-poll_ages(polls, latest) / horizon)
    return replace(polls, weight=weight if polls.weight is None else weight * polls.weight)


def predictive_scores(polls: PollTable, prior: GammaPrior, horizons: Float64s) -> Float64s:
    """Return the log score of the Gamma filter, with a row per horizon and a column per item.
    It is Σ ln P over the item's polls, P being the probability of the poll's result given the polls before.
    For a poll that finds no change after a time t, ln P = −a·ln(1+t/b) with the belief Gamma(a, b).

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls, prior = polls_from_intervals(1.0, False), GammaPrior.of(1.0, 1.0)
    >>> scores = predictive_scores(polls, prior, np.array([np.inf]))
    >>> scores.round(12).tolist()                     # ½
    [[-0.69314718056]]
    """
    rows, over = prior.for_items(polls.items), horizons[:, None]
    shape = np.repeat(rows.shape[None], horizons.size, axis=0)
    rate, score = np.repeat(rows.rate[None], horizons.size, axis=0), np.zeros(shape.shape)
    for these in rounds(rank_within(run_starts(polls.item))):
        item, t, found = polls.item[these], polls.elapsed[these], polls.changed[these]
        own = GammaPrior(rows.shape[item], rows.rate[item])
        a, b = fade(shape[:, item], rate[:, item], own, t, over)
        quiet = a * np.log1p(t / b)
        # ln(1−e^{−quiet}). np.where evaluates both of its arguments, so the unused one must not reach ln 0.
        seen = np.log(-np.expm1(-np.maximum(quiet, np.finfo(float).tiny)))
        score[:, item] += np.where(found, seen, -quiet)
        b[:, ~found] += t[~found]
        a[:, found], b[:, found] = belief_after_change(a[:, found], b[:, found], t[found])
        shape[:, item], rate[:, item] = a, b
    return score


def choose_horizon(polls: PollTable, prior: GammaPrior) -> float:
    """Return the horizon that predicts best, or ∞ if forgetting is not supported.
    Horizons from 1/2 to 1/128 of the longest history of an item are compared.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> item = np.repeat(np.arange(50), 40)
    >>> busy_then_quiet = polls_from_intervals(np.ones(2000), np.tile(np.arange(40) < 20, 50), item=item)
    >>> choose_horizon(busy_then_quiet, GammaPrior.of(1.0, 1.0)) < math.inf
    True
    """
    informative = _informative_items(polls)
    if np.count_nonzero(informative) < FEWEST:
        return math.inf
    part, own = polls.of_items(informative), prior.for_items(polls.items)
    ends = np.cumsum(part.polls_per_item())
    latest = ends[part.item] - np.arange(part.size) <= LATEST
    part = PollTable(part.item[latest], part.elapsed[latest], part.changed[latest], part.items)
    own = GammaPrior(own.shape[informative], own.rate[informative])
    longest = float(part.time_per_item().max())
    horizons = np.append(np.inf, longest / np.exp2(np.arange(1, HALVINGS + 1)))
    scores = predictive_scores(part, own, horizons)
    gains = scores[1:] - scores[0]  # compared with not forgetting; a column per item
    best = int(np.argmax(gains.sum(axis=1)))
    never, shuffled = predictive_scores(_shuffle_order(part), own, horizons[[0, best + 1]])
    ordered = gains[best] - (shuffled - never)
    errors = min(_standard_errors(gains[best]), _standard_errors(ordered))
    return float(horizons[best + 1]) if errors > MARGIN else math.inf


def _informative_items(polls: PollTable) -> Bools:
    """Mark the items with at least ``FEWEST`` polls and one change; every k-th of them if there are many."""
    number = polls.polls_per_item()
    informative = np.asarray((number >= FEWEST) & (polls.changes_per_item() > 0))
    every = -(-int(np.minimum(number[informative], LATEST).sum()) // POLLS_ENOUGH)
    return np.asarray(informative & (np.cumsum(informative) % max(every, 1) == 0))


def _shuffle_order(polls: PollTable) -> PollTable:
    """Put each item's polls in another, reproducible sequence: sorted by the fractional part of
    (position of the poll) · golden ratio."""
    order: Ints = np.lexsort(((rank_within(run_starts(polls.item)) * GOLDEN) % 1.0, polls.item))
    return PollTable(polls.item, polls.elapsed[order], polls.changed[order], polls.items)


def _standard_errors(gains: Float64s) -> float:
    """Return the total gain over all items, in units of its standard error."""
    error = float(gains.std(ddof=1)) * math.sqrt(gains.size)
    return float(gains.sum()) / max(error, 1e-300)
