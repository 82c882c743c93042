"""Estimate how often tables change from the differences of their row counters. Pure.

One transaction may write many database rows, so the number of rows is no number of changes. Each difference
of two readings is therefore reduced to one bit: rows were written, or none. If X of n readings, t seconds
apart, found writes, the estimated number of writing transactions per second is λ = −ln((n−X+½)/(n+½))/t (Cho
& Garcia-Molina's estimator; Zhang et al. 2007, a = 0.5). The confidence interval is Jeffreys' interval for
the probability 1−e^{−λt} of a write between two readings.

If every reading found writes, the bits give only a lower limit of the rate. Then the number of rows per
second is used, divided by (D+1)/2. The dispersion D is the variance of the number of rows per reading,
divided by its mean (1 for single rows); (D+1)/2 is the mean number of rows of a transaction if that number
has a geometric distribution. If all transactions write the same number of rows, this rate is too high by a
factor of at most 2. The upper end of the confidence interval is then the rate of rows, because every
transaction writes at least one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.values.results import RateEstimate, RateEstimates

LEVEL = 0.9
_MEMORY_S = 7 * 86400.0  # the weight of a reading falls by the factor e in this time
_ENOUGH = 8.0  # with fewer readings the numbers of rows are not used


@dataclass(frozen=True, slots=True)
class WriteTally:
    """Sums over the readings of one table, in which older readings have a lower weight. ``readings`` and
    ``changed`` count all readings and those that found writes. ``seconds`` is the time between the readings.
    ``rows`` and ``squares`` are the sums of the numbers of written rows and of their squares."""

    readings: float = 0.0
    changed: float = 0.0
    seconds: float = 0.0
    rows: float = 0.0
    squares: float = 0.0

    def add(self, elapsed_s: float, rows: int) -> WriteTally:
        """Return the tally after one more reading, ``elapsed_s`` seconds later, with ``rows`` new writes."""
        keep = float(np.exp(-elapsed_s / _MEMORY_S))
        return WriteTally(
            self.readings * keep + 1,
            self.changed * keep + (rows > 0),
            self.seconds * keep + elapsed_s,
            self.rows * keep + rows,
            self.squares * keep + rows * rows,
        )

    @property
    def dispersion(self) -> float:
        """The variance of the rows per reading, divided by their mean; at least 1, and 1 without writes.

        >>> tally = WriteTally()
        >>> for rows in (0, 100, 0, 100):
        ...     tally = tally.add(1.0, rows)
        >>> round(tally.dispersion)
        50
        """
        if not self.rows > 0:
            return 1.0
        mean = self.rows / self.readings
        return max(1.0, (self.squares / self.readings - mean * mean) / mean)

    @property
    def information(self) -> float:
        """The Fisher information about ln λ, n·(λt)²/(e^{λt} − 1), which is highest at λt ≈ 1.6. λ is the
        changes per second. Each of n readings, t seconds apart, shows only whether rows were written.

        >>> WriteTally(100, 80, 500).information > WriteTally(100, 100, 5000).information
        True
        """
        if not self.readings > 0:
            return 0.0
        share = (self.changed + 0.5) / (self.readings + 1)  # estimates 1 − e^{−λt}
        return float(self.readings * np.log1p(-share) ** 2 * (1 - share) / share)


def most_informative(tallies: Iterable[WriteTally]) -> WriteTally:
    """Return the tally that tells most about a table's rate. Each has another time between readings."""
    return max(tallies, key=lambda tally: (tally.information, tally.seconds), default=WriteTally())


def overall_dispersion(tallies: Iterable[WriteTally]) -> float | None:
    """Return the dispersion of the rows of several tables together: Σ D·ν/Σ ν; None without rows. D is the
    dispersion of one table, ν its rows per second. The formula holds if tables are written independently,
    because variances and means then add up.

    >>> overall_dispersion([WriteTally(4, 2, 4, 200, 20_000), WriteTally(4, 4, 4, 4, 4)])
    49.03921568627451
    """
    found = [(each.rows / each.seconds, each.dispersion) for each in tallies if each.rows > 0]
    total = sum(rate for rate, _ in found)
    return sum(rate * dispersion for rate, dispersion in found) / total if total > 0 else None


def table_rates(tallies: Mapping[str, WriteTally], level: float = LEVEL) -> RateEstimates:
    """Return the changes per second of each table, with a confidence interval of probability ``level``.

    >>> found = table_rates({"sales": WriteTally(100, 40, 500, 400, 9000)})
    >>> found.rate.round(3), found.low.round(3), found.high.round(3)
    (array([0.102]), array([0.078]), array([0.132]))
    """
    from scipy.special import betaincinv

    columns = [(t.readings, t.changed, t.seconds, t.rows, t.dispersion) for t in tallies.values()]
    readings, changed, seconds, rows, dispersion = np.array(columns, dtype=np.float64).reshape(-1, 5).T
    each_s = np.divide(seconds, readings, out=np.ones_like(seconds), where=readings > 0)
    bits = -np.log1p(-changed / (readings + 0.5)) / each_s
    # Jeffreys' interval: quantiles of Beta(X + ½, n − X + ½) for the probability that a reading finds writes.
    ends = [
        -np.log1p(-betaincinv(changed + 0.5, readings - changed + 0.5, tail)) / each_s
        for tail in ((1 - level) / 2, (1 + level) / 2)
    ]
    each = np.divide(rows, seconds, out=np.zeros_like(rows), where=seconds > 0)
    every = (changed > readings - 0.5) & (readings > 0.5)  # every reading found writes
    full = every & (readings >= _ENOUGH)
    return RateEstimates(
        rate=np.where(full, np.maximum(bits, each / ((dispersion + 1) / 2)), bits),
        low=ends[0],
        high=np.where(every, np.maximum(ends[1], each), ends[1]),
        polls=readings.astype(np.int64),
        changes=changed.astype(np.int64),
        method="bits",
    )


def view_rates(
    pairs: Sequence[tuple[str, str]], tallies: Mapping[str, WriteTally], level: float = LEVEL
) -> dict[str, RateEstimate]:
    """Return the changes per second of each view: the sum of the rates of its tables.

    ``pairs`` are tuples (view, table). ``level`` is the probability of the confidence interval. The distances
    between the rate and the ends of the interval are added like standard deviations (Zou & Donner 2008), so
    that a view of one table has the confidence interval of that table.

    >>> sales, stock = WriteTally(100, 40, 500, 400, 9000), WriteTally(100, 20, 500, 20, 20)
    >>> found = view_rates([("v", "sales"), ("v", "stock")], {"sales": sales, "stock": stock})["v"]
    >>> round(found.low, 3), round(found.rate, 3), round(found.high, 3)
    (0.118, 0.146, 0.181)
    """
    known = {base: tallies.get(base, WriteTally()) for _, base in pairs}
    if not known:
        return {}
    found = table_rates(known, level)
    row = {base: at for at, base in enumerate(known)}
    below: dict[str, list[int]] = {}
    for view, base in dict.fromkeys(pairs):
        below.setdefault(view, []).append(row[base])
    estimates = {}
    for view, rows in below.items():
        rate = float(found.rate[rows].sum())
        down, up = (
            float(np.sqrt(np.sum((end[rows] - found.rate[rows]) ** 2))) for end in (found.low, found.high)
        )
        polls, changes = int(found.polls[rows].sum()), int(found.changes[rows].sum())
        estimates[view] = RateEstimate(rate, max(rate - down, 0.0), rate + up, polls, changes, found.method)
    return estimates
