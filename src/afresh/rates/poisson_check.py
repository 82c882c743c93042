"""A test of the Poisson model: are the gaps between changes exponentially distributed?

A gap is the time between two consecutive changes of an item. Lilliefors' statistic D is the largest distance
between the distribution of n gaps and the exponential distribution with the same mean. Its p value uses
Stephens' form D* = (D − 0.2/n)(√n + 0.26 + 0.5/√n), whose distribution hardly depends on n. The dispersion is
variance/mean² of the gaps: 1 for Poisson changes, more for bursts, less for regular changes. Cho &
Garcia-Molina 2000, §6.2 and Fig. 11, show the histogram of gaps.

Polls show gaps only as multiples of the polling interval. So only items that change rarely can be tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import ArrayLike, Float64s, Ints, as_floats, nonnegative
from afresh.values.errors import InputError

# The probability that D* is above _D is _P. It was simulated with 1e5 to 4e5 samples at n = 10, 20, 50 and
# 200. The simulations agree within 0.02, and below p = 0.3 within 0.01.
_P = (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.15, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001, 0.0001)
_D = (0.366, 0.434, 0.478, 0.563, 0.683, 0.831, 0.921, 0.986, 1.088, 1.182, 1.292, 1.371, 1.532, 1.748)

FEWEST_GAPS = 5
COARSE = 20  # polls per change: with 20, true Poisson items are rejected 7 times in 100, with 5 nearly always


@dataclass(frozen=True, slots=True)
class PoissonChecks:
    """The results of the test for each item with at least ``least`` gaps: D (``statistic``), p value and
    dispersion. ``few`` is the number of other items that changed."""

    item: Ints
    gaps: Ints
    mean_gap: Float64s
    statistic: Float64s
    p_value: Float64s
    dispersion: Float64s
    few: int
    least: int

    @property
    def sentence(self) -> str:
        judged = self.item.size
        if judged == 0:
            return f"No item has {self.least} gaps between changes, too few to judge the Poisson model."
        fit = int(np.sum(self.p_value >= 0.05))
        words = f"Of {judged} items with at least {self.least} gaps, {fit} ({fit / judged:.0%}) look Poisson"
        words += " (95% would if all were)"
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
    if least < FEWEST_GAPS:
        raise InputError(f"{least} gaps are too few to judge: ask for {FEWEST_GAPS} or more")
    owner, gaps = gaps_of(item, times)
    names, which, counts = np.unique(owner, return_inverse=True, return_counts=True)
    enough = counts >= least
    kept = enough[which]
    owner, gaps = owner[kept], gaps[kept]
    first = np.searchsorted(owner, names[enough])
    mean, statistic, p_value, dispersion = _by_segment(gaps, owner, first)
    changed = np.unique(np.asarray(as_floats("item", item))).size
    few = changed - int(enough.sum())
    return PoissonChecks(names[enough], counts[enough], mean, statistic, p_value, dispersion, few, least)


def changes_to_judge(polls: PollTable) -> tuple[Ints, Float64s]:
    """Return a tuple (item, time) of arrays: the changes whose times are known precisely enough for the test.
    These are the changes of items with at least ``COARSE`` polls per change, and of items of which every
    change has a credible stamp. With fewer polls even perfect Poisson changes look regular."""
    if polls.end is None:
        raise InputError("polls without times cannot be judged")
    changes = np.bincount(polls.item[polls.changed], minlength=polls.items)
    fine = polls.polls_per_item() >= COARSE * changes
    when = polls.end
    if polls.since is not None:
        when = polls.end - np.where(np.isnan(polls.since), 0.0, polls.since)
        unstamped = polls.changed & np.isnan(polls.since)
        fine |= np.bincount(polls.item[unstamped], minlength=polls.items) == 0
    shown = polls.changed & fine[polls.item]
    return polls.item[shown], when[shown]


def gaps_of(item: ArrayLike, times: ArrayLike) -> tuple[Ints, Float64s]:
    """Return a tuple (item, gap) of arrays with an entry for each gap between two changes, sorted by item.
    ``item`` and ``times`` have one entry per change, in any order.

    >>> gaps_of([0, 1, 0, 1, 0], [5.0, 1.0, 2.0, 3.0, 5.0])
    (array([0, 1]), array([3., 2.]))
    """
    owner = np.asarray(as_floats("item", item), dtype=np.float64)
    when = np.asarray(as_floats("times", times), dtype=np.float64)
    if owner.ndim != 1 or owner.shape != when.shape:
        raise InputError(f"{owner.size} items and {when.size} times: give one item for each change")
    if not (np.all(np.isfinite(when)) and np.all(owner % 1 == 0)):
        raise InputError("times must be finite and items whole numbers")
    order = np.lexsort((when, owner))
    owner, when = owner[order].astype(np.int64), when[order]
    gap = np.diff(when)
    same = (np.diff(owner) == 0) & (gap > 0)
    return owner[1:][same], gap[same]


def gaps_near(
    item: ArrayLike, times: ArrayLike, interval: float, *, tolerance: float = 0.1, least: int = 10
) -> Float64s:
    """Return the gaps of items whose mean gap is near ``interval``, as in Cho's Fig. 11.
    ``tolerance`` is the allowed deviation as a share of ``interval``. Only items with at least ``least`` gaps
    are used, because n gaps with a given mean vary less than exponential ones: their variance is smaller by
    the factor (n−1)/(n+1). That suffices for a picture; use ``check_items`` for a test.

    >>> gaps_near([0, 0, 0, 1, 1], [0.0, 9.0, 20.0, 0.0, 3.0], interval=10.0, least=2).tolist()
    [9.0, 11.0]
    """
    if not (interval > 0 and tolerance > 0):
        raise InputError(f"interval {interval} and tolerance {tolerance} must be above 0")
    owner, gaps = gaps_of(item, times)
    names, which, counts = np.unique(owner, return_inverse=True, return_counts=True)
    mean = np.bincount(which, gaps, minlength=names.size) / counts if names.size else np.zeros(0)
    near = (np.abs(mean / interval - 1) <= tolerance) & (counts >= least)
    return np.asarray(gaps[near[which]])


@dataclass(frozen=True, slots=True)
class GapHistogram:
    """The share of gaps in each bin from a to b (two successive ``edges``), and the share ``expected`` if the
    gaps are exponential with mean m: e^{−a/m} − e^{−b/m}."""

    edges: Float64s
    share: Float64s
    expected: Float64s


def gap_histogram(gaps: ArrayLike, bins: int = 30, *, width: float | None = None) -> GapHistogram:
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


def _by_segment(
    gaps: Float64s, owner: Ints, first: npt.NDArray[np.intp] | Ints
) -> tuple[Float64s, Float64s, Float64s, Float64s]:
    """Return a tuple (mean, D, p value, dispersion) of arrays with an entry for each item.
    ``owner`` is the item of each gap; the gaps of an item start at its entry of ``first``."""
    if gaps.size == 0:
        return np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
    counts = np.diff(first, append=gaps.size)
    mean = np.add.reduceat(gaps, first) / counts
    ranked = gaps[np.lexsort((gaps, owner))]
    relative = ranked / np.repeat(mean, counts)
    below = -np.expm1(-relative)
    n = np.repeat(counts, counts)
    rank = np.arange(gaps.size) - np.repeat(first, counts)
    distance = np.maximum((rank + 1) / n - below, below - rank / n)
    statistic = np.maximum.reduceat(distance, first)
    dispersion = np.add.reduceat((relative - 1) ** 2, first) / (counts - 1)
    root = np.sqrt(counts)
    scaled = (statistic - 0.2 / counts) * (root + 0.26 + 0.5 / root)
    p_value = np.exp(np.interp(scaled, (0.0, *_D), np.log((1.0, *_P))))
    return mean, statistic, p_value, dispersion
