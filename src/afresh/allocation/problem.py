"""An allocation problem as arrays: the gains and costs of refreshing each item, and the limits.

The problem is to maximise Σ wᵢ·valueᵢ(fᵢ) over the frequencies fᵢ of the items, with Σ spendᵢ(fᵢ) ≤ B and
lowerᵢ ≤ fᵢ ≤ upperᵢ, where w is the weight and B the budget. A refresh costs c, and c_u more if it finds a
change. With the rate λ and the freshness F that is c·f + c_u·λ·F per time in fixed order, because a share
λF/f of the refreshes finds a change. If one unit of budget costs μ, the best frequency of an item solves
w·value' = μ(c + c_u·λ·F').

``build_problem`` checks the arguments that ``allocate``, ``budget_for`` and ``budget_curve`` share.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from afresh.allocation.gains import Gains, RateGains, decay_gains
from afresh.allocation.objectives import objective_for
from afresh.model.decay import Decay
from afresh.model.freshness import check_order
from afresh.values.arrays import ArrayLike, Bools, Float64s, Floats, Ints, nonnegative
from afresh.values.errors import InfeasibleError, InputError, UsageError, did_you_mean

_ROUNDING = 1e-12  # lower bounds may exceed a budget or cap by rounding errors


@dataclass(frozen=True, slots=True)
class GroupCaps:
    """Groups of items that may spend at most ``cap`` together; ``labels`` are the names of the groups.
    ``group[i]`` is the number of item i's group; the number len(cap) means that item i has no cap."""

    group: Ints
    cap: Float64s
    labels: tuple[Hashable, ...]

    def sums(self, per_item: Float64s) -> Float64s:
        """Return the sum of ``per_item`` over each group."""
        sums = np.bincount(self.group, weights=per_item, minlength=len(self.cap) + 1)[:-1]
        return sums.astype(np.float64, copy=False)  # without items ``bincount`` returns integers

    def spread(self, per_group: Float64s, elsewhere: float) -> Float64s:
        """Return for each item the number of its group in ``per_group``; ``elsewhere`` if it has no group."""
        return np.append(per_group, elsewhere)[self.group]


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """The items and their limits; arrays have one number per item.
    A plan maximises the values in ``gains``. ``freshness`` and ``age`` (minus the age) are only for reports.
    """

    rate: Float64s
    weight: Float64s
    cost: Float64s
    gains: Gains
    freshness: Gains
    age: Gains
    lag: Gains | None = None
    update_cost: Float64s | None = None
    lower: Float64s | None = None
    upper: Float64s | None = None
    caps: GroupCaps | None = None

    def active(self) -> Bools:
        """Return which items have rate and weight above 0; others never get more than their lower bound."""
        return (self.rate > 0) & (self.weight > 0)

    def floor(self) -> Float64s:
        return np.zeros(len(self.rate)) if self.lower is None else self.lower

    def plan(self, price: float | Float64s) -> Float64s:
        """Return the best frequencies if one unit of budget costs ``price`` (one price, or one per item)."""
        net_weight = self.weight
        if self.update_cost is not None:
            net_weight = net_weight - price * self.update_cost * self.rate
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # At the best frequency the marginal is μc/(w−μ·c_u·λ); it is infinite if no refresh pays.
            threshold = np.where(self.active() & (net_weight > 0), price * self.cost / net_weight, np.inf)
            frequency = self.gains.frequency(threshold)
        if self.lower is not None or self.upper is not None:
            frequency = np.clip(frequency, self.lower, self.upper)
        return frequency

    def spends(self, frequency: Float64s) -> Float64s:
        """Return the cost per time of each item at these frequencies."""
        spends = self.cost * frequency
        if self.update_cost is not None:
            spends = spends + self.update_cost * self.rate * self.freshness.value(frequency)
        return spends

    def spend(self, frequency: Float64s) -> float:
        """Return the cost per time of all items at these frequencies."""
        return float(self.spends(frequency).sum())

    def values(self, frequency: Float64s) -> Float64s:
        """Return weight·value of each active item at these frequencies, 0 for the others."""
        with np.errstate(invalid="ignore"):  # weight 0 times an infinite loss
            return np.where(self.active(), self.weight * self.gains.value(frequency), 0.0)

    def max_plan(self) -> Float64s:
        """Return the best frequencies if the budget is unlimited: upper bounds, infinite without a bound."""
        frequency = np.where(self.active(), self.gains.max_frequency(), 0.0)
        if self.lower is not None or self.upper is not None:
            frequency = np.clip(frequency, self.lower, self.upper)
        return frequency

    def prices(self, frequency: Float64s | None = None) -> Float64s:
        """Return what one more unit of spend on each item gains; 0 for static and unweighted items.
        By default ``frequency`` is the lower bound. An item then gets more than that bound if one unit of
        budget costs less than the result."""
        if frequency is None:
            frequency = self.lower
        with np.errstate(invalid="ignore", over="ignore"):
            marginal = self.gains.max_marginal() if frequency is None else self.gains.marginal(frequency)
            outlay = self.cost
            if self.update_cost is not None:
                outlay = outlay + self.update_cost * self.rate * marginal
            return np.where(self.active(), self.weight * marginal / outlay, 0.0)

    def mean_freshness(self, frequency: Float64s) -> float:
        """Return the mean freshness, weighted by the items' weights; 1 if all weights are 0."""
        fresh = np.where(self.rate > 0, self.freshness.value(frequency), 1.0)
        total = self.weight.sum()
        return float((self.weight * fresh).sum() / total) if total > 0 else 1.0

    def mean_age(self, frequency: Float64s) -> float:
        """Return the mean age, weighted by the items' weights; ∞ if an active item is never refreshed."""
        active = self.active()
        total = self.weight.sum()
        if total == 0:
            return 0.0
        if (active & (frequency == 0)).any():
            return float("inf")
        age = np.where(active, -self.age.value(frequency), 0.0)
        return max(0.0, float((self.weight * age).sum() / total))

    def mean_lag(self, frequency: Float64s) -> float:
        """Return the content lag F(L), which Yang et al. (2010) call content freshness: the mean over all N
        items of weight·lag, Σwλ/(6f²)/N at even intervals. It is ∞ if an active item is never refreshed."""
        if self.lag is None:
            raise UsageError("the content lag needs exponential decay")
        active = self.active()
        if (active & (frequency == 0)).any():
            return float("inf")
        lag = np.where(active, -self.lag.value(frequency), 0.0)
        return max(0.0, float((self.weight * lag).sum() / max(len(self.rate), 1)))

    def check_bounds(self) -> None:
        """Raise ``InfeasibleError`` if lower bounds exceed upper bounds or the cap of their group."""
        if self.lower is None:
            return
        if self.upper is not None and (self.lower > self.upper).any():
            item = int(np.argmax(self.lower > self.upper))
            raise InfeasibleError(
                f"item {item} has lower bound {self.lower[item]:g} above upper bound {self.upper[item]:g}, "
                f"by {self.lower[item] - self.upper[item]:g}"
            )
        if self.caps is not None:
            floors = self.caps.sums(self.spends(self.lower))
            over = floors > self.caps.cap * (1 + _ROUNDING)
            if over.any():
                row = int(np.argmax(over))
                raise InfeasibleError(
                    f"group {self.caps.labels[row]!r} needs {floors[row]:g} for its lower bounds, "
                    f"{floors[row] - self.caps.cap[row]:g} more than its cap of {self.caps.cap[row]:g}"
                )

    def floor_spend(self, budget: float) -> float:
        """Return what the lower bounds cost per time; raise ``InfeasibleError`` if it exceeds the budget."""
        floor = self.spend(self.floor())
        if floor > budget * (1 + _ROUNDING):
            raise InfeasibleError(
                f"the lower bounds need a budget of {floor:g}: {floor - budget:g} more than {budget:g}"
            )
        return floor


Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
CapsLike: TypeAlias = Mapping[Any, float] | Sequence[float]


def parse_caps(groups: Labels | None, caps: CapsLike | None, items: int) -> GroupCaps | None:
    """Check and convert the caps of groups; ``groups`` has the label of each item's group.
    ``caps`` maps labels to caps, or is a list of the caps of the groups 0, 1, … Other groups have no limit.

    >>> parse_caps(["a", "b", "a"], {"a": 2.0}, 3)
    GroupCaps(group=array([0, 1, 0]), cap=array([2.]), labels=('a',))
    """
    if caps is None:
        return None
    if groups is None:
        raise UsageError("caps need groups: give the group of each item")
    array = groups if isinstance(groups, np.ndarray) else np.array(groups, dtype=object)
    if array.shape != (items,):
        raise InputError(f"groups has {array.size} labels for {items} items: give one for each item")
    labels: list[Hashable] = array.tolist()
    if not isinstance(caps, Mapping):
        caps = _caps_by_number(labels, caps)
    present = set(labels)
    unknown = [label for label in caps if label not in present]
    if unknown:
        names = [str(label) for label in present]
        raise InputError(f"unknown group {unknown[0]!r} in caps{did_you_mean(str(unknown[0]), names)}")
    rows = {label: row for row, label in enumerate(caps)}
    cap = nonnegative("cap", list(caps.values()), infinite=True).astype(np.float64, copy=False)
    group = np.fromiter((rows.get(label, len(rows)) for label in labels), dtype=np.int64, count=items)
    return GroupCaps(group, cap, tuple(rows))


def _caps_by_number(labels: list[Hashable], caps: Sequence[float]) -> dict[Hashable, float]:
    wrong = [label for label in labels if not isinstance(label, int) or not 0 <= label < len(caps)]
    if wrong:
        raise InputError(
            f"group {wrong[0]!r} has no place in a list of {len(caps)} caps: "
            "number the groups from 0, or give caps by label"
        )
    present = set(labels)
    return {number: cap for number, cap in enumerate(caps) if number in present}


_LEAST, _MOST = 1e-50, 1e50


class ProblemOptions(TypedDict, total=False):
    """The options of an allocation problem: everything except its rates and its budget."""

    weights: ArrayLike | None
    costs: ArrayLike | None
    update_costs: ArrayLike | None
    objective: str
    order: str
    decay: str | Sequence[str] | Decay | None
    lower: ArrayLike | None
    upper: ArrayLike | None
    groups: Labels | None
    caps: CapsLike | None


def build_problem(
    rates: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    update_costs: ArrayLike | None = None,
    objective: str = "freshness",
    order: str = "fixed",
    decay: str | Sequence[str] | Decay | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    groups: Labels | None = None,
    caps: CapsLike | None = None,
) -> AllocationProblem:
    """Return the problem with the arguments of ``allocate``, checked.
    Raise ``InputError`` or ``UsageError`` for wrong numbers, lengths or combinations of options, and
    ``InfeasibleError`` if lower bounds exceed upper bounds or caps."""
    rate = check_rates(rates).astype(np.float64, copy=False)
    _check_range("rate", rate)
    order = check_order(order, random_means="memoryless")
    if isinstance(decay, str) or (isinstance(decay, Sequence) and len(decay)):
        names = [decay.strip()] if isinstance(decay, str) else decay
        if all(name == "exponential" for name in names):
            decay = None  # exponential items need only their rates
    if update_costs is not None and not np.any(np.asarray(update_costs)):
        update_costs = None  # they cost nothing, so that every objective and decay can do without them
    _check_combination(objective, order, decay, update_costs)
    # Static items get no refreshes, so any rate above 0 may replace theirs and avoid divisions by 0.
    safe = np.where(rate > 0, rate, 1.0)
    problem = AllocationProblem(
        rate=rate,
        weight=_column("weight", weights, rate, 1.0),
        cost=_column("cost", costs, rate, 1.0),
        gains=_gains(objective, order, decay, safe),
        freshness=_gains("freshness", order, decay, safe),
        age=_gains("age", order, decay, safe),
        lag=None if decay is not None else _gains("lag", order, None, safe),
        update_cost=None if update_costs is None else _column("update_cost", update_costs, rate, 0.0),
        lower=None if lower is None else _column("lower", lower, rate, 0.0),
        upper=None if upper is None else _column("upper", upper, rate, np.inf, infinite=True),
        caps=parse_caps(groups, caps, len(rate)),
    )
    problem.check_bounds()
    return problem


def check_rates(rates: ArrayLike) -> Floats:
    """Return the rates as an array; raise ``InputError`` unless they are a list of numbers of 0 or more."""
    rate = nonnegative("rate", rates)
    if rate.ndim != 1:
        raise InputError(f"rate has {rate.ndim} dimensions: give a list of numbers, one for each item")
    return rate


def check_column(
    name: str, given: ArrayLike | None, rate: Floats, *, infinite: bool = False
) -> Floats | None:
    """Return a number per item, or None if ``given`` is None; one number is used for all items. Raise
    ``InputError`` if the length differs from that of ``rate``, or for a cost of 0."""
    if given is None:
        return None
    column = nonnegative(name, given, infinite=infinite)
    if column.ndim == 0:
        column = np.full_like(rate, column)
    if column.shape != rate.shape:
        raise InputError(f"{name} has {column.size} values for {rate.size} items: give one for each item")
    if name == "cost" and column.size and not column.min() > 0:
        raise InputError(f"cost[{int(np.argmin(column))}] is 0: a refresh must cost more than nothing")
    return column


def _check_range(name: str, column: Float64s) -> None:
    """Raise ``InputError`` for numbers so small or large that squares and quotients might overflow."""
    wrong = (column > 0) & ((column < _LEAST) | (column > _MOST))
    if wrong.any():
        item = int(np.argmax(wrong))
        raise InputError(
            f"{name}[{item}] is {column[item]:g}: "
            f"must be 0 or from {_LEAST:g} to {_MOST:g}; choose another unit"
        )


def check_budget(budget: float) -> float:
    """Return the budget as a float; raise ``InputError`` unless it is one finite number of 0 or more."""
    value = nonnegative("budget", budget)
    if value.ndim != 0:
        raise InputError("budget must be one number")
    return float(value)


def _check_combination(objective: str, order: str, decay: object, update_costs: object) -> None:
    objective_for(objective, order)
    fixed = order == "fixed"
    if decay is not None:
        if objective not in ("freshness", "age"):
            raise UsageError(f"objective {objective!r} needs exponential decay: use freshness or age")
        if not fixed:
            raise UsageError("decay functions other than exponential need order 'fixed'")
        if update_costs is not None:
            raise UsageError("update costs need exponential decay")
    if update_costs is not None and not (fixed and objective == "freshness"):
        raise UsageError("update costs need objective 'freshness' and order 'fixed'")


def _column(
    name: str, given: ArrayLike | None, rate: Float64s, default: float, *, infinite: bool = False
) -> Float64s:
    checked = check_column(name, given, rate, infinite=infinite)
    if checked is None:
        return np.full(rate.shape, default)
    column = checked.astype(np.float64, copy=False)
    if name in ("weight", "cost", "update_cost"):
        _check_range(name, column)
    return column


def _gains(objective: str, order: str, decay: str | Sequence[str] | Decay | None, rate: Float64s) -> Gains:
    if decay is None:
        return RateGains(objective_for(objective, order), rate)
    return decay_gains(objective, decay, rate)
