"""The interface of every policy, its input, and its table of items.

A policy decides which items to poll, but not when: its caller enforces the budget and reads the clock. A
policy consists of a few arrays, reads no clock, does no I/O, draws no random numbers, and is picklable. All
times are numbers in one unit that the caller chooses. The engine uses seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class OpenTime:
    """The periods in which polling is allowed: period j is from ``opens[j]`` until before ``closes[j]``.
    They are sorted and do not overlap. Cho & Garcia-Molina 2000, §3, call them synchronization points.

    >>> nights = OpenTime.of([0.0, 24.0], [6.0, 30.0])
    >>> nights.is_open(3.0), nights.is_open(6.0)
    (True, False)
    """

    opens: Float64s
    closes: Float64s

    @classmethod
    def of(cls, opens: ArrayLike, closes: ArrayLike) -> OpenTime:
        """Build from begin and end times; raise ``InputError`` if a period is empty or overlaps another."""
        begin, end = np.asarray(opens, dtype=np.float64), np.asarray(closes, dtype=np.float64)
        if begin.shape != end.shape or begin.ndim != 1 or begin.size == 0:
            raise InputError("windows need as many closing as opening times, one at least")
        if not (np.all(begin < end) and np.all(end[:-1] <= begin[1:])):
            raise InputError("windows must close after they open and follow each other")
        return cls(begin, end)

    def is_open(self, now: float) -> bool:
        at = int(np.searchsorted(self.opens, now, side="right")) - 1
        return bool(at >= 0 and now < self.closes[at])


class Policy(Protocol):
    """Chooses items to poll and learns from polls. Items are numbered from 0; times must never decrease."""

    def next(self, now: float, k: int) -> Ints:
        """Return the numbers of k distinct items to poll at time ``now``, the most urgent first.
        They are fewer if fewer items exist or caps forbid more, and none while polling is not allowed."""

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Learn from one poll of each of these distinct items, at time ``now`` (one for all or one for each).
        ``changed`` says which polls found a change."""

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Learn from notices that items changed. ``items`` has one entry for each notice.
        ``now`` is the time of the notices, ``origin`` their origin (sitemap, feed, webhook, cursor)."""


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """The input from which a policy is made; the copies of all items are fresh at time ``now``.

    ``budget``     the cost per unit of time of all polls together.
    ``families``   the number of each item's family (−1 for none), with a row per item and a column per kind
                   of family. Items of one family are likely to change together.
    ``open_time``  the periods in which polling is allowed; None for always.
    ``caps``       ``caps[h]`` limits the cost per unit of time of the items whose ``cap_group`` is h. Groups
                   whose number is not below the length of ``caps`` have no limit.
    ``hosts``      the number of each item's host. How far notices are believed is learned for each host.
                   None if all items have the same host.
    ``rates``      the true rate of each item, for the oracle, which knows them.
    ``hour``       the length of an hour in the unit of the times; None if seasons are not learned.
    ``slowest``    the lowest rate to distinguish from 0; None for a thousandth of the mean frequency.
    """

    budget: float
    weight: Float64s
    cost: Float64s
    now: float = 0.0
    objective: str = "freshness"
    families: Ints | None = None
    open_time: OpenTime | None = None
    cap_group: Ints | None = None
    caps: Float64s = field(default_factory=lambda: np.zeros(0))
    hosts: Ints | None = None
    rates: Float64s | None = None
    hour: float | None = 3600.0
    slowest: float | None = None

    @classmethod
    def of(
        cls, items: int, budget: float, *, weights: ArrayLike = 1.0, costs: ArrayLike = 1.0, now: float = 0.0
    ) -> PolicyInput:
        """Return the input for ``items`` items; weight and cost are one number for all or one for each item.

        >>> PolicyInput.of(3, 1.5).mean_frequency
        0.5
        """
        weight = np.broadcast_to(nonnegative("weight", weights).astype(np.float64), items).copy()
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), items).copy()
        return cls(budget, weight, cost, now)

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_costs(self.cost)

    @property
    def items(self) -> int:
        return self.weight.size

    @property
    def mean_frequency(self) -> float:
        """The polls of an item per unit of time if all items were polled equally often."""
        return self.budget / (float(self.cost.sum()) or 1.0)


PolicyFactory = Callable[[PolicyInput], Policy]


def check_budget(budget: float) -> None:
    if not (np.isfinite(budget) and budget > 0):
        raise InputError(f"budget is {budget:g}: must be above 0 and finite")


def check_costs(cost: Float64s) -> None:
    if cost.size and not cost.min() > 0:
        raise InputError("a cost is 0 or less: a poll must cost something")


def as_poll_arrays(items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> tuple[Ints, Float64s, Bools]:
    """Return the arguments of ``Policy.observe`` as a tuple of three arrays of equal length.

    >>> as_poll_arrays([1, 2], 3.0, [True, False])[1].tolist()
    [3.0, 3.0]
    """
    which, found = np.asarray(items, dtype=np.int64), np.asarray(changed, dtype=bool)
    when = np.asarray(now, dtype=np.float64)
    if when.shape != which.shape:
        when = np.broadcast_to(when, which.shape)
    if which.shape != found.shape or which.ndim != 1:
        raise InputError(f"{which.size} items were polled but {found.size} outcomes given")
    return which, when, found


FEW = 200  # values of which sorting all takes no longer than finding the largest first


def largest(value: Float64s, k: int) -> Ints:
    """Return the positions of the k largest values, the largest first; equal values by ascending position.

    >>> largest(np.array([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    if k <= 0:
        return np.zeros(0, dtype=np.int64)
    if value.size <= FEW:
        return np.asarray(np.argsort(-value, kind="stable")[:k])
    if k < value.size:
        edge = np.partition(value, value.size - k)[value.size - k]
        above = np.flatnonzero(value > edge)
        chosen = np.concatenate([above, np.flatnonzero(value == edge)[: k - above.size]])
    else:
        chosen = np.arange(value.size)
    order: Ints = chosen[np.lexsort((chosen, -value[chosen]))]
    return order


@dataclass(slots=True)
class CapAllowances:
    """What each group of items may spend on polls now, within its cap on the cost per time (token buckets).
    Item i is in group ``group[i]``; groups whose number is not below the length of ``cap`` have no limit. The
    ``allowance`` of a group grows with time at the speed of its cap, and the costs of its polls are
    subtracted. It never exceeds what was added since the last call (at time ``at``), or the cost of the
    group's dearest poll (``largest``) if that is more. So idle time cannot be saved for a burst of polls.

    >>> caps = CapAllowances.of(np.array([0, 0, 1]), np.array([0.5]), np.ones(3), 0.0)
    >>> caps.allowed(np.array([0, 1, 2]), 4.0).tolist()       # cap · 4 = 2 polls
    [True, True, True]
    >>> caps.spend(np.array([0, 1]))
    >>> caps.allowed(np.array([0, 1, 2]), 5.0).tolist()
    [False, False, True]
    """

    group: Ints
    cap: Float64s
    cost: Float64s
    largest: Float64s
    allowance: Float64s
    at: float

    @classmethod
    def of(cls, group: Ints, cap: Float64s, cost: Float64s, now: float) -> CapAllowances:
        """Return the allowances at time ``now``: every group may pay for its dearest poll."""
        largest = np.zeros(cap.size + 1)
        np.maximum.at(largest, np.minimum(group, cap.size), cost)
        return cls(group, cap, cost, largest[:-1], largest[:-1].copy(), now)

    def allowed(self, items: Ints, now: float) -> Bools:
        """Return for each item whether its group can pay for its poll; items early in the array go first."""
        if now > self.at:  # a second call at the same time must not reduce the allowance
            filled = self.cap * (now - self.at)
            self.allowance = np.minimum(self.allowance + filled, np.maximum(filled, self.largest))
            self.at = now
        group = np.minimum(self.group[items], self.cap.size)
        order = np.argsort(group, kind="stable")
        spent = np.cumsum(self.cost[items][order])
        starts = np.searchsorted(group[order], np.arange(self.cap.size + 1))
        before = np.concatenate([[0.0], spent])[starts]
        within = spent - before[group[order]]
        fits = within <= np.append(self.allowance, np.inf)[group[order]] * (1 + 1e-12)
        result = np.empty(items.size, dtype=bool)
        result[order] = fits
        return result

    def spend(self, items: Ints) -> None:
        group = np.minimum(self.group[items], self.cap.size)
        self.allowance -= np.bincount(group, self.cost[items], minlength=self.cap.size + 1)[:-1]

    def grow(self, cost: Float64s) -> None:
        """Add new items, which belong to no group with a limit."""
        self.group = np.concatenate([self.group, np.full(cost.size, self.cap.size)])
        self.cost = np.concatenate([self.cost, cost])


ATTEMPTS = 4
"""How often ``PolicyItems.pick`` requests candidates, four times as many each time, if caps refuse some."""


class PolicyItems:
    """The weights, costs, times of the last polls and caps of a policy's items.
    ``alive`` says which items are not removed.

    >>> items = PolicyItems(PolicyInput.of(3, 1.0))
    >>> items.remove([1]); items.alive.tolist()
    [True, False, True]
    """

    def __init__(self, start: PolicyInput) -> None:
        self.budget = start.budget
        self.weight, self.cost = start.weight.copy(), start.cost.copy()
        self.alive: Bools = np.ones(start.items, dtype=bool)
        self.last_poll: Float64s = np.full(start.items, start.now)
        self._count()
        self.open_time = start.open_time
        self.caps = None
        if start.cap_group is not None:
            self.caps = CapAllowances.of(start.cap_group, start.caps, start.cost, start.now)

    @property
    def size(self) -> int:
        """The number of items, including removed ones."""
        return self.weight.size

    @property
    def mean_frequency(self) -> float:
        """The polls of an item per unit of time if all items were polled equally often."""
        return self.budget / (self.total_cost or 1.0)

    def _count(self) -> None:
        self.alive_count = int(self.alive.sum())
        self.total_cost = float(self.cost[self.alive].sum())

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float) -> Ints:
        """Add new items, whose copies are made at time ``now``; return their numbers."""
        weight = np.atleast_1d(nonnegative("weight", weights)).astype(np.float64)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), weight.shape)
        check_costs(cost)
        numbers = np.arange(self.size, self.size + weight.size)
        self.weight = np.concatenate([self.weight, weight])
        self.cost = np.concatenate([self.cost, cost])
        self.alive = np.concatenate([self.alive, np.ones(weight.size, dtype=bool)])
        self.last_poll = np.concatenate([self.last_poll, np.full(weight.size, now)])
        self._count()
        if self.caps is not None:
            self.caps.grow(np.asarray(cost))
        return numbers

    def remove(self, items: ArrayLike) -> None:
        self.alive[self.as_numbers(items)] = False
        self._count()

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        which = self.as_numbers(items)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), which.shape)
        check_costs(cost)
        before, self.cost[which] = self.cost[which], cost
        self.weight[which] = nonnegative("weight", weights)
        # The engine calls this with every group of polls, so sums over all items are computed only if needed.
        if not np.array_equal(before, cost):
            self._count()
        if self.caps is not None:
            self.caps.cost[which] = cost

    def set_budget(self, budget: float) -> None:
        check_budget(budget)
        self.budget = float(budget)

    def as_numbers(self, items: ArrayLike) -> Ints:
        """Return the items as an array of numbers; raise ``InputError`` if one does not exist."""
        which = np.atleast_1d(np.asarray(items, dtype=np.int64))
        if which.size and (which.min() < 0 or which.max() >= self.size):
            raise InputError(f"there is no item {which.max()}: items are numbered from 0 to {self.size - 1}")
        return which

    def pick(self, now: float, k: int, most_urgent: Callable[[int], Ints]) -> Ints:
        """Return up to k items to poll, or none while polling is not allowed.
        ``most_urgent(n)`` returns the n most urgent items. Those that their caps forbid are left out."""
        if k <= 0 or (self.open_time is not None and not self.open_time.is_open(now)):
            return np.zeros(0, dtype=np.int64)
        if self.caps is None:
            return most_urgent(k)
        wanted = k
        for _ in range(ATTEMPTS):
            items = most_urgent(wanted)
            chosen = items[self.caps.allowed(items, now)][:k]
            if chosen.size == k or items.size < wanted:
                break
            wanted *= 4
        self.caps.spend(chosen)
        return chosen
