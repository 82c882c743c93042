"""Bulks: records of different rates, decays and benefits that are refreshed together (Razniewski 2016, §6).

If it is refreshed every u, a bulk earns NI(u) = Σ_i [G_i·F_i(u) − S_i − U_i·(1−z_i(u))/u] − K/u per time,
with the symbols of ``afresh.money.terms`` for each record i. E(u) is this minus the income of never
refreshing. E rises where H(u) = Σ G_i·gain_i(u) − K − Σ U_i·turning_i(u) is below 0
(``afresh.money.excess_income``).

H starts at −K, and E has a local maximum where H crosses 0 upwards. The number of maxima depends:

- Without update costs there is at most one: H' = −u·Σ G_i·z_i' ≥ 0, because decays never rise.
- Records with exponential decay have H' = u·Σ λ_i·(G_i − λ_i·U_i)·e^{−λ_i·u}. By Descartes' rule for sums of
  exponentials, H' changes its sign at most as often as G_i − λ_i·U_i does if the records are sorted by λ_i.
  If all records have the same benefit and costs, that is once, from − to +, because for large u the slowest
  record dominates. So H may fall at first, then rises, and crosses 0 at most once: there is at most one
  maximum.
- In general (if update costs differ, or a Weibull shape is above 1) there may be several maxima. So all
  intervals are scanned, and the highest maximum is refined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, Empirical, Exponential, Geometric
from afresh.model.roots import find_crossing, find_maximum, narrow_maximum
from afresh.money.excess_income import SMOOTH_DECAYS, change_probability, ratio_of, time_range, turning_term
from afresh.money.priced_items import CostOfSize, PricedItems, size_factor
from afresh.money.terms import just_before
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError

Members = npt.NDArray[np.intp]
_STEPS = 64  # of a decay with steps that are tried one by one


@dataclass(frozen=True, slots=True)
class RecordBulks:
    """The records (``items``), the number of each record's bulk (``member``), and the cost of one refresh of
    each bulk (``check``)."""

    items: PricedItems
    member: Members
    check: Float64s

    def sums(self, values: Float64s) -> Float64s:
        """Return the sum of ``values`` (one per record) over each bulk."""
        return np.asarray(np.bincount(self.member, values, self.check.size), dtype=np.float64)

    def surplus(self, u: Float64s, gain: Float64s) -> Float64s:
        """Return Σ [gain·∫₀ᵘ(z−z∞) − U·(1−z(u))] − K, what one refresh of each bulk earns in the time u."""
        values, times, update = np.empty_like(gain), u[self.member], self.items.terms.update
        for group in self.items.groups:
            rows = group.rows
            values[rows] = _surplus(group.decay, times[rows], gain[rows], update[rows])
        return self.sums(values) - self.check

    def excess(self, u: Float64s) -> Float64s:
        """Return the income per time of each bulk that is refreshed every u, minus that without refreshes."""
        return self.surplus(u, self.items.terms.gain) / u

    def higher(self, one: Float64s, other: Float64s) -> Float64s:
        """Return, for each bulk, whichever of two refresh intervals earns more."""
        return np.where(self.excess(one) > self.excess(other), one, other)

    def cost_to_gain(self, u: Float64s) -> Float64s:
        """Return what one more refresh costs over what it gains, for each bulk refreshed every ``u``.

        The ratio is (K + Σ U·turning(u))/(Σ G·gain(u)), summed over the records of the bulk, with K, U and G
        the costs and the gain of ``IncomeTerms``. Above 1 a longer interval u earns more.
        """
        terms = self.items.terms
        gained, owed = self._sum_over_records(lambda decay, t: decay.gain(t), u, terms.gain), self.check
        if terms.update.any():
            owed = owed + self._sum_over_records(turning_term, u, terms.update)
        return ratio_of(owed, gained)

    def crosses_once(self, gain: Float64s) -> bool:
        """Return whether the income with these gains is known to have at most one maximum in every bulk.
        That is so if H crosses 0 at most once, and upwards; see the module's docstring."""
        update, groups = self.items.terms.update, self.items.groups
        if not update.any():
            return all(isinstance(group.decay, SMOOTH_DECAYS) for group in groups)
        if not all(isinstance(group.decay, Exponential) for group in groups):
            return False
        order = np.lexsort((self.items.rate, self.member))
        worth, bulk = (gain >= self.items.rate * update)[order], self.member[order]
        # In order of rates within a bulk, gain ≥ λ·U must not become true again once it is false.
        return not bool((worth[1:] & ~worth[:-1] & (bulk[1:] == bulk[:-1])).any())

    def span(self) -> tuple[Float64s, Float64s]:
        """Return a tuple (shortest, longest): the range of intervals to search for each bulk.
        It covers the ranges of all records of the bulk."""
        first, last = np.ones((2, self.member.size))
        for group in self.items.groups:
            first[group.rows], last[group.rows] = time_range(group.decay, group.rows.size)
        low, high = np.full(self.check.size, np.inf), np.zeros(self.check.size)
        np.minimum.at(low, self.member, first)
        np.maximum.at(high, self.member, last)
        return low, high

    def _sum_over_records(
        self, function: Callable[[Decay, Float64s], Float64s], u: Float64s, weight: Float64s
    ) -> Float64s:
        values, times = np.empty_like(weight), u[self.member]
        for group in self.items.groups:
            values[group.rows] = function(group.decay, times[group.rows])
        return self.sums(weight * values)


@dataclass(frozen=True, slots=True)
class BulkOptimum:
    """The best time between refreshes of each bulk (infinite if futile), and its excess income.
    ``excess`` is the income per time minus that of never refreshing. Refreshing starts to pay if all benefits
    of the bulk are multiplied by ``factor``."""

    interval: Float64s
    excess: Float64s
    factor: Float64s


def bulk_members(labels: Iterable[Hashable]) -> Members:
    """Return the number of each record's bulk, from 0; a record with the label None or "" is its own bulk.

    >>> bulk_members(["a", "", "b", "a", ""])
    array([0, 1, 2, 0, 3])
    """
    numbers: dict[Hashable, int] = {}
    own = ((row,) if label is None or label == "" else label for row, label in enumerate(labels))
    return np.fromiter((numbers.setdefault(label, len(numbers)) for label in own), dtype=np.intp)


def build_bulks(
    items: PricedItems, labels: Iterable[Hashable], cost_of_size: CostOfSize = "constant"
) -> RecordBulks:
    """Return bulks of the items with equal labels; raise ``InputError`` if ``cost`` differs within a bulk."""
    member = bulk_members(labels)
    if member.size != items.rate.size:
        raise InputError(f"lengths differ: rate {items.rate.size}, bulk {member.size}")
    bulks = int(member.max(initial=-1)) + 1
    cost = np.zeros(bulks)
    cost[member] = items.cost
    if (wrong := np.flatnonzero(cost[member] != items.cost)).size:
        row = wrong[0]
        raise InputError(
            f"cost[{row}] is {items.cost[row]:g}, but {cost[member[row]]:g} elsewhere in its bulk: "
            "one refresh of a bulk has one cost"
        )
    records = np.asarray(np.bincount(member, items.size, bulks), dtype=np.float64)
    return RecordBulks(items, member, cost * size_factor(records, cost_of_size))


def solve_bulks(bulks: RecordBulks) -> BulkOptimum:
    """Return the best time between refreshes of each bulk.

    >>> from afresh.money.priced_items import build_items
    >>> pages = build_items([0.1, 0.1, 0.5], 1.0, 1.0)
    >>> solve_bulks(build_bulks(pages, ["a", "a", "b"])).interval.round(3)
    array([3.554, 3.357])
    """
    if bulks.check.size == 0:
        return BulkOptimum(*np.empty((3, 0)))
    first, last = bulks.span()
    gain = bulks.sums(bulks.items.terms.gain)
    # An interval below K/G cannot pay: a refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u.
    least = np.divide(bulks.check, gain, out=np.zeros_like(gain), where=gain > 0)
    low = np.clip(least, first, last)
    cheapest, factor = _break_even(bulks, first, last)
    if bulks.crosses_once(bulks.items.terms.gain):
        interval = find_crossing(bulks.cost_to_gain, low, last)
    else:
        # A maximum that barely pays is so narrow that the scan may miss it, but it is near ``cheapest``.
        near = narrow_maximum(bulks.excess, np.maximum(cheapest / 2, low), np.minimum(cheapest * 2, last))
        interval = bulks.higher(near, find_maximum(bulks.excess, low, last))
        for group in bulks.items.groups:  # the moment just before a step of z may earn more
            for candidate in (*_first_steps(group.decay), *_steps_near(group.decay, interval)):
                interval = bulks.higher(np.clip(candidate, first, last), interval)
    excess = bulks.excess(interval)
    interval = np.where((bulks.check == 0) & (interval <= first), 0.0, interval)
    pays = excess > 0
    return BulkOptimum(np.where(pays, interval, np.inf), np.where(pays, excess, 0.0), factor)


def _first_steps(decay: Decay) -> list[Float64s]:
    """Return the moments just before the first steps of the decay; none if it has no steps.

    The income jumps down at a step by the update costs of the records that change there. So it may have a
    maximum just before each step that is too narrow for a scan. Late steps are small, and ``_steps_near``
    finds the best of them."""
    if isinstance(decay, Geometric) and np.ptp(decay.step) == 0:
        return [just_before(np.array(float(np.max(decay.step)) * count)) for count in range(1, _STEPS + 1)]
    if isinstance(decay, Empirical) and not decay.linear:
        return [just_before(time) for time in np.asarray(decay.times, dtype=np.float64)[1 : _STEPS + 1]]
    return []


def _steps_near(decay: Decay, u: Float64s) -> list[Float64s]:
    """Return the moments just before the steps of the decay on either side of u; none if it has no steps."""
    if isinstance(decay, Geometric) and np.ptp(decay.step) == 0:
        step = float(np.max(decay.step))
        count = np.maximum(np.floor(u / step), 1.0)
        return [just_before((count + more) * step) for more in (0, 1)]
    if isinstance(decay, Empirical) and not decay.linear:
        times = np.asarray(decay.times, dtype=np.float64)[1:]
        place = np.searchsorted(times, u)
        return [just_before(times[np.clip(place + more, 0, times.size - 1)]) for more in (-1, 0)]
    return []


def _surplus(decay: Decay, u: Float64s, gain: Float64s, update: Float64s) -> Float64s:
    """Return gain·∫₀ᵘ(z−z∞) − update·(1−z(u)), what a refresh of each record earns in the time u."""
    lost = change_probability(decay, u)
    if isinstance(decay, Exponential):  # both terms are multiples of 1−z, which saves an evaluation
        rate = np.asarray(decay.rate, dtype=np.float64)
        lifetime = np.divide(1.0, rate, out=np.zeros_like(rate), where=rate > 0)
        return np.asarray((gain * lifetime - update) * lost)
    return np.asarray(gain * (decay.integral(u) - u * decay.plateau()) - update * lost)


def _break_even(bulks: RecordBulks, first: Float64s, last: Float64s) -> tuple[Float64s, Float64s]:
    """Return a tuple (interval, factor): with all benefits multiplied by ``factor`` a bulk breaks even.
    This factor, (K + ΣU(1−z) − ΣS·Z)/(ΣnB·Z) with Z = ∫₀ᵘ(z−z∞), is least at u = ``interval``; B is the
    benefit of each of n records. It is 0 if the stale cost alone pays for the refreshes."""
    stale, benefit = bulks.items.terms.stale, bulks.items.benefit * bulks.items.size

    def cheapness(u: Float64s) -> Float64s:
        paid = -bulks.surplus(u, stale)
        earned = bulks.surplus(u, benefit + stale) + paid
        # If paid ≤ 0, the stale cost alone pays for the refreshes.
        return np.where(paid > 0, earned / np.where(paid > 0, paid, 1.0), np.inf)

    def factor_at(u: Float64s) -> Float64s:
        cheap = cheapness(u)
        return np.where(cheap > 0, 1 / np.where(cheap > 0, cheap, 1.0), np.inf)

    factor = factor_at(last)
    if not bulks.items.terms.update.any():
        return last, factor  # without update costs, the longer the interval, the more a refresh earns
    # The second derivative of the surplus is −H'(u)/u; if H' changes sign once, from − to +, the surplus is
    # highest at the end too.
    scaled = benefit * np.where(factor < np.inf, factor, 1.0)[bulks.member] + stale
    if bulks.crosses_once(scaled):
        return last, factor
    cheapest = find_maximum(cheapness, first, last)
    for group in bulks.items.groups:
        for candidate in (*_first_steps(group.decay), *_steps_near(group.decay, cheapest)):
            moved = np.clip(candidate, first, last)
            cheapest = np.where(cheapness(moved) > cheapness(cheapest), moved, cheapest)
    return cheapest, factor_at(cheapest)
