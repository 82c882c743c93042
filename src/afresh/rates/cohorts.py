"""Rates from cohorts: of n items checked again after a time t, k had changed.

One cohort gives λ̂ = −ln(1−k/n)/t (Razniewski 2016, Example 1 and §8.2). Several cohorts of a group, with
different times, give the λ at which as many changes are expected as were seen:

    Σ_j n_j·(1−e^{−λt_j}) = p·N,   p = K/N,  N = Σ n_j,  K = Σ k_j.

Where all changed (K = N) that is infinite, where none did it is 0, and neither can be planned with. There p
is taken as if half of a further item had gone the other way: N/(N+½) and ½/(N+½). For one cohort the
first is the log family with a = 0.5, ln(2n+1)/t; the second is close to 1/(2nt).

Bounds are Clopper–Pearson bounds on p, carried through the same equation. They are exact for one time, and
on the safe side for several: a sum of unequal chances spreads less than the binomial (Hoeffding 1956).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.model.roots import find_crossing
from afresh.rates.log_ratio import ratio_interval
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class CohortRates:
    """Rate and bounds of every group, in order of first appearance.

    ``one_sided`` marks groups in which all or none changed, whose rate rests on the half added.
    """

    groups: tuple[Hashable, ...]
    rate: Float64s
    low: Float64s
    high: Float64s
    n: Ints
    changed: Ints
    one_sided: Bools


def cohort_rates(
    group: Sequence[Any], elapsed: ArrayLike, n: ArrayLike, changed: ArrayLike, level: float = 0.9
) -> CohortRates:
    """Rates of groups from cohorts (group, elapsed, n, changed).

    Razniewski 2016, Table 3: of 10 students, 8 academic and 13 industrial researchers and 19 professors
    10, 5, 3 and 2 had moved five years later.

    >>> who = ["student", "academic", "industry", "professor"]
    >>> found = cohort_rates(who, [5] * 4, [10, 8, 13, 19], [10, 5, 3, 2])
    >>> found.rate.round(3).tolist(), found.high.round(2).tolist()
    ([0.609, 0.196, 0.052, 0.022], [inf, 0.44, 0.14, 0.07])
    """
    groups, which = _number_groups(group)
    span, size, gone = _check_columns(elapsed, n, changed, which.size)
    order = np.argsort(which, kind="stable")
    first = np.searchsorted(which[order], np.arange(len(groups)))
    span, size, gone = span[order], size[order], gone[order]
    total, seen = (np.add.reduceat(column, first) if column.size else column for column in (size, gone))
    low, high = ratio_interval(total, seen, level)
    one_sided = (seen == 0) | (seen == total)
    share = np.where(seen == 0, 0.5, seen) / np.where(one_sided, total + 0.5, total)
    solve = _Expected(span, size, first, total)
    return CohortRates(
        groups=groups,
        rate=solve.rate(-np.log1p(-share)),
        low=solve.rate(low),
        high=solve.rate(high),
        n=total.astype(np.int64),
        changed=seen.astype(np.int64),
        one_sided=one_sided,
    )


@dataclass(frozen=True, slots=True)
class _Expected:
    """The equation of each group: which λ makes the mean chance of a change 1−e^{−r}?"""

    span: Float64s
    size: Float64s
    first: npt.NDArray[np.intp]
    total: Float64s

    def rate(self, r: ArrayLike) -> Float64s:
        """λ with Σ n_j·e^{−λt_j}/N = e^{−r}, which lies between r/t_max and r/t_min."""
        ratio = np.asarray(r, dtype=np.float64)
        if ratio.size == 0:
            return ratio
        solvable = (ratio > 0) & np.isfinite(ratio)
        inside = np.where(solvable, ratio, 1.0)
        found = find_crossing(
            lambda rate: np.asarray(-np.expm1(-inside) / self._mean_chance(rate)),
            inside / np.maximum.reduceat(self.span, self.first),
            inside / np.minimum.reduceat(self.span, self.first),
        )
        return np.where(solvable, found, ratio)

    def _mean_chance(self, rate: Float64s) -> Float64s:
        counts = np.diff(self.first, append=self.span.size)
        gone = -self.size * np.expm1(-np.repeat(rate, counts) * self.span)
        return np.asarray(np.add.reduceat(gone, self.first) / self.total)


def _number_groups(group: Sequence[Any]) -> tuple[tuple[Hashable, ...], Ints]:
    number: dict[Hashable, int] = {}
    which = [number.setdefault(name, len(number)) for name in group]
    return tuple(number), np.asarray(which, np.int64)


def _check_columns(
    elapsed: ArrayLike, n: ArrayLike, changed: ArrayLike, rows: int
) -> tuple[Float64s, Float64s, Float64s]:
    columns = {"elapsed": elapsed, "n": n, "changed": changed}
    span, size, gone = (
        np.asarray(nonnegative(name, given), dtype=np.float64) for name, given in columns.items()
    )
    for name, column in zip(columns, (span, size, gone), strict=True):
        if column.shape != (rows,):
            raise InputError(f"{rows} groups and {column.size} values of {name}: give one for each group")
    _refuse_where("elapsed", span, span == 0, "must be above 0")
    _refuse_where("n", size, (size < 1) | (size % 1 != 0), "must be a whole number of 1 or more")
    _refuse_where("changed", gone, (gone > size) | (gone % 1 != 0), "must be a whole number, at most n")
    return span, size, gone


def _refuse_where(name: str, column: Float64s, wrong: Bools, what: str) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{name}[{at}] is {column[at]:g}: {what}")
