"""A test of the Poisson model: are the gaps between changes exponentially distributed?

A gap is the time between two consecutive changes of an item. Lilliefors' statistic D is the largest distance
between the distribution of n gaps and the exponential distribution with the same mean. Its p value uses
Stephens' form D* = (D − 0.2/n)(√n + 0.26 + 0.5/√n), whose distribution hardly depends on n. The dispersion is
variance/mean² of the gaps: 1 for Poisson changes, more for bursts, less for regular changes. Cho &
Garcia-Molina 2000, §6.2 and Fig. 11, show the histogram of gaps.

A poll shows only that the first change after the last detected one lies between two polls. If changes are
Poisson, the time from a poll to the next change is exponential, so a gap in (low, high] stands for the part
from 1−e^{−λ·low} to 1−e^{−λ·high} of the model's distribution, and is spread evenly over this part (the
non-randomised form of the probability integral transform). λ is the maximum-likelihood rate of these gaps.
With daily polls and a mean gap of ten days, as in Cho & Garcia-Molina's own experiment, true Poisson items
are then rejected at most as often as the p value says (2 to 3 in 100 at 0.05), since spreading gaps makes D
smaller. Items with fewer than ``COARSE`` polls per change are not tested: their polls show too little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.rates.estimators.history_estimators import most_likely
from afresh.rates.poll_table import PollTable
from afresh.values.arrays import ArrayLike, Float64s, Ints, nonnegative
from afresh.values.errors import InputError

# The probability that D* is above _D is _P. It was simulated with 1e5 to 4e5 samples at n = 10, 20, 50 and
# 200. The simulations agree within 0.02, and below p = 0.3 within 0.01.
_P = (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.15, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001, 0.0001)
_D = (0.366, 0.434, 0.478, 0.563, 0.683, 0.831, 0.921, 0.986, 1.088, 1.182, 1.292, 1.371, 1.532, 1.748)

FEWEST_GAPS = 5
_BINS = 30
COARSE = 3  # polls per change; with fewer, not even changes at regular times are told from Poisson changes


@dataclass(frozen=True, slots=True)
class PoissonChecks:
    """The results of the test for each item with at least ``least`` gaps: D (``statistic``), p value and
    dispersion. ``few`` is the number of items with fewer gaps, ``coarse`` that of items with too few polls.
    ``is_exact`` says whether the times of all changes are known; otherwise the test rejects a little less."""

    item: Ints
    gaps: Ints
    mean_gap: Float64s
    statistic: Float64s
    p_value: Float64s
    dispersion: Float64s
    few: int
    least: int
    coarse: int = 0
    is_exact: bool = True

    @property
    def sentence(self) -> str:
        judged = self.item.size
        if judged == 0 and self.coarse:
            rare = f"{self.coarse} items have fewer than {COARSE} polls for each change found"
            return f"No item can be judged: {rare}, which show too little of the Poisson model."
        if judged == 0:
            return f"No item has {self.least} gaps between changes, too few to judge the Poisson model."
        fit = int(np.sum(self.p_value >= 0.05))
        words = f"Of {judged} items with at least {self.least} gaps, {fit} ({fit / judged:.0%}) look Poisson"
        words += f" ({'' if self.is_exact else 'at least '}95% would if all were)"
        if fit >= 0.9 * judged:  # so few rejections are nearly what chance gives if the model is true
            return f"{words}."
        wrong = self.dispersion[self.p_value < 0.05]
        bursts = float(np.mean(wrong > 1))
        kind = "change in bursts" if bursts > 0.5 else "change more regularly"
        others = f"of the others {max(bursts, 1 - bursts):.0%} {kind}"
        return f"{words}; {others}, with a median dispersion of {np.median(wrong):.2g}."


def check_items(item: ArrayLike, times: ArrayLike, *, least: int = 10) -> PoissonChecks:
    """Test every item that has at least ``least`` gaps between its changes.
    ``item`` and ``times`` have one entry per change, in any order; changes of an item at one time count once.

    >>> times = np.cumsum(np.random.default_rng(0).standard_exponential(200))
    >>> check_items(np.zeros(200), times).sentence
    'Of 1 items with at least 10 gaps, 1 (100%) look Poisson (95% would if all were).'
    """
    owner, gaps = gaps_of(item, times)
    changed = np.unique(np.asarray(item)).size
    return check_gaps(ObservedGaps(owner, gaps, gaps, changed), least=least)


@dataclass(frozen=True, slots=True)
class ObservedGaps:
    """Gaps between changes, sorted by ``item``. Each is longer than ``low`` and at most ``high``; the two are
    equal if the times of the changes are known. ``changed`` is the number of items that changed at all,
    ``coarse`` that of items that are left out because they have fewer than ``COARSE`` polls per change."""

    item: Ints
    low: Float64s
    high: Float64s
    changed: int
    coarse: int = 0

    def middle(self) -> Float64s:
        """Return the middle of each gap's possible lengths, which is right on average."""
        return np.asarray((self.low + self.high) / 2)


def observed_gaps(polls: PollTable) -> ObservedGaps:
    """Return the gaps between changes that the polls show.
    The gaps of an item are exact if every change of it has a credible stamp. Otherwise they are measured from
    a poll that found a change to the next such poll.

    >>> from afresh.rates.poll_table import polls_from_times
    >>> found = observed_gaps(polls_from_times([0] * 9, range(9), [0, 0, 1, 0, 0, 0, 0, 1, 0]))
    >>> found.low.tolist(), found.high.tolist(), found.coarse
    ([4.0], [5.0], 0)
    """
    if polls.end is None:
        raise InputError("polls without times cannot be judged")
    found = np.bincount(polls.item[polls.changed], minlength=polls.items)
    stamped = np.zeros(polls.items, dtype=bool)
    if polls.since is not None:
        unstamped = polls.changed & np.isnan(polls.since)
        stamped = np.bincount(polls.item[unstamped], minlength=polls.items) == 0
    fine = stamped | (polls.polls_per_item() >= COARSE * found)
    shown = polls.changed & fine[polls.item]
    item, elapsed = polls.item[shown], polls.elapsed[shown]
    when = polls.end[shown]
    known = stamped[item]
    if polls.since is not None:
        when = when - np.where(known, polls.since[shown], 0.0)
    gap = np.diff(when)
    kept = (np.diff(item) == 0) & (gap > 0)
    width = np.where(known[1:], 0.0, np.minimum(elapsed[1:], gap))[kept]
    changed, coarse = int(np.count_nonzero(found)), int(np.count_nonzero(~fine))
    return ObservedGaps(item[1:][kept], gap[kept] - width, gap[kept], changed, coarse)


def check_gaps(gaps: ObservedGaps, *, least: int = 10) -> PoissonChecks:
    """Test every item that has at least ``least`` gaps between its changes."""
    if least < FEWEST_GAPS:
        raise InputError(f"{least} gaps are too few to judge: ask for {FEWEST_GAPS} or more")
    names, which, counts = np.unique(gaps.item, return_inverse=True, return_counts=True)
    enough = counts >= least
    kept = enough[which]
    low, high, middle = gaps.low[kept], gaps.high[kept], gaps.middle()[kept]
    first = np.searchsorted(gaps.item[kept], names[enough])
    counts, few = counts[enough], gaps.changed - int(enough.sum()) - gaps.coarse
    if not counts.size:
        none = np.zeros(0)
        return PoissonChecks(names[:0], counts, none, none, none, none, few, least, gaps.coarse)
    mean = np.add.reduceat(middle, first) / counts
    dispersion = np.add.reduceat((middle / np.repeat(mean, counts) - 1) ** 2, first) / (counts - 1)
    statistic = _distance(low, high, np.repeat(_rates(low, high, mean, counts), counts), first, counts)
    root = np.sqrt(counts)
    scaled = (statistic - 0.2 / counts) * (root + 0.26 + 0.5 / root)
    p_value = np.exp(np.interp(scaled, (0.0, *_D), np.log((1.0, *_P))))
    ends = few, least, gaps.coarse, not bool((high > low).any())
    return PoissonChecks(names[enough], counts, mean, statistic, p_value, dispersion, *ends)


def gap_width(gaps: ObservedGaps, chosen: Float64s) -> float:
    """Return the width of histogram bins for the ``chosen`` gaps: near a thirtieth of the range in which all
    but 1/1000 are expected, and a multiple of the polling interval, so that all bins hold as many polls."""
    interval = float(np.median(gaps.high - gaps.low))
    width = math.log(1000) * float(chosen.mean()) / _BINS
    return max(1, round(width / interval)) * interval if interval > 0 else width


def _rates(low: Float64s, high: Float64s, mean: Float64s, counts: Ints) -> Float64s:
    """Return the maximum-likelihood rate of each item: 1/mean of exact gaps; for a gap in (low, high] the
    likelihood is that of an interval ``low`` without and an interval high − low with a change."""
    owner = np.repeat(np.arange(counts.size), counts)
    wide = high > low
    if not wide.any():
        return np.asarray(1 / mean)
    parts = [(owner[low > 0], low[low > 0]), (owner[wide], (high - low)[wide])]
    item, elapsed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    changed = np.repeat([False, True], [parts[0][0].size, parts[1][0].size])
    order = np.argsort(item, kind="stable")
    rate = most_likely(PollTable(item[order], elapsed[order], changed[order], counts.size))
    exact = np.bincount(owner[wide], minlength=counts.size) == 0
    return np.where(exact | ~np.isfinite(rate), 1 / mean, rate)


def _distance(
    low: Float64s, high: Float64s, rate: Float64s, first: npt.NDArray[np.intp], counts: Ints
) -> Float64s:
    """Return D of each item: the largest distance between the distribution of its gaps, each spread evenly
    over 1−e^{−λ·low} to 1−e^{−λ·high}, and the uniform distribution."""
    start, end = -np.expm1(-rate * low), -np.expm1(-rate * high)
    owner = np.repeat(np.arange(counts.size), counts)
    n = np.repeat(counts, counts)
    ranked = end[np.lexsort((end, owner))]
    rank = np.arange(ranked.size) - np.repeat(first, counts)
    exact = np.maximum.reduceat(np.maximum((rank + 1) / n - ranked, ranked - rank / n), first)
    if not (end > start).any():
        return np.asarray(exact)
    # The spread distribution is a line between the ends of gaps, whose slope changes by ±1/(n·width) there.
    width = end - start
    slope = 1 / (n * np.where(width > 0, width, 1.0))
    knots, item = np.concatenate([start, end]), np.concatenate([owner, owner])
    order = np.lexsort((knots, item))
    slopes = np.cumsum(np.concatenate([slope, -slope])[order])
    knots, item = knots[order], item[order]
    same = np.diff(item) == 0
    share = np.cumsum(np.append(0.0, np.where(same, slopes[:-1] * np.diff(knots), 0.0)))
    begin = np.searchsorted(item, np.arange(counts.size))
    share -= np.repeat(share[begin], 2 * counts)
    spread = np.maximum.reduceat(np.abs(share - knots), begin)
    return np.where(np.maximum.reduceat(width, first) > 0, spread, exact)


def gaps_of(item: ArrayLike, times: ArrayLike) -> tuple[Ints, Float64s]:
    """Return a tuple (item, gap) of arrays with an entry for each gap between two changes, sorted by item.
    ``item`` (whole numbers) and ``times`` have one entry per change, in any order.

    >>> gaps_of([0, 1, 0, 1, 0], [5.0, 1.0, 2.0, 3.0, 5.0])
    (array([0, 1]), array([3., 2.]))
    """
    owner, when = np.asarray(item, dtype=np.int64), np.asarray(times, dtype=np.float64)
    order = np.lexsort((when, owner))
    owner, when = owner[order], when[order]
    gap = np.diff(when)
    same = (np.diff(owner) == 0) & (gap > 0)
    return owner[1:][same], gap[same]


@dataclass(frozen=True, slots=True)
class GapHistogram:
    """The share of gaps in each bin from a to b (two successive ``edges``), and the share ``expected`` if the
    gaps are exponential with mean m: e^{−a/m} − e^{−b/m}."""

    edges: Float64s
    share: Float64s
    expected: Float64s


def gap_histogram(gaps: ArrayLike, bins: int = _BINS, *, width: float | None = None) -> GapHistogram:
    """Return the shares of gaps in ``bins`` bins of equal ``width``, of which the first begins at 0.
    By default the bins are so wide that 1/1000 of all gaps is expected beyond the last one. Shares are shares
    of all gaps, including those beyond the last bin.

    >>> found = gap_histogram([1.0, 1.0, 2.0, 4.0], bins=2, width=2.0)
    >>> found.share.tolist(), found.expected.round(3).tolist()
    ([0.5, 0.25], [0.632, 0.233])
    """
    given = np.asarray(nonnegative("gaps", gaps), dtype=np.float64).ravel()
    mean = float(given.mean()) if given.size else 0.0
    if mean == 0 or bins < 1:
        raise InputError(f"{given.size} gaps in {bins} bins: give gaps above 0 and one bin or more")
    step = math.log(1000) * mean / bins if width is None else width
    if not 0 < step < math.inf:
        raise InputError(f"a bin width of {step} must be above 0, and finite")
    edges = step * np.arange(bins + 1.0)
    cell = np.minimum(given // step, bins).astype(np.int64)
    share = np.bincount(cell, minlength=bins + 1)[:bins] / given.size
    expected = -np.exp(-edges[:-1] / mean) * np.expm1(-step / mean)
    return GapHistogram(np.asarray(edges, np.float64), share, expected)
