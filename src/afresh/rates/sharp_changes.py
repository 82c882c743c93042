"""Sharp changes of rates: finds in the polls of each item when its rate jumped, and which polls still count.

This is step 3 of Zhang et al. 2007, §3, which compares successive estimates of a rate, done on the polls
themselves, because estimates from a few polls differ by far more than the paper's 10 to 30 % by chance. An
item's rate λ is a point of a grid. Before each poll it is drawn anew with probability h, from the grid with
equal probabilities; else it stays. Over the n polls of an item these h add up to about 1. Let L_i(λ) be the
likelihood of poll i and Σ the sum over the grid. The forward recursion

    α_i(λ) = L_i(λ)·[(1−h_i)·α_{i−1}(λ) + h_i·Σα_{i−1}/points]

gives the probability Σα_n of the item's polls if its rate may jump; with h = 0 it is that of a steady rate.
Their ratio is the item's Bayes factor. The share of items that jumped is learned from all items
(``_probabilities``), so that in a log of steady items a jump needs far more evidence than in a log in which
most items jumped. If many items jumped, h is shared out over time as their jumps were, so that a moment at
which all items jumped is known from all of them (``_share_out``). The probability that poll k belongs to the
same period as the latest poll is

    w_k = Σ α_k(λ)·Π_{i>k} (1−h_i)·L_i(λ) / Σα_n,

by which its evidence is weighted in estimates of today's rate: old polls of an item that certainly jumped do
not count. Where it is unclear whether an item jumped (``doubtful``), its rate is estimated both ways, and the
answer is the mixture of both (``either_rate``), as probable as the jump is. The last sharp change lies where
w_k falls below ½; the one before it is found in the same way from the polls before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.forgetting import weigh_by_age
from afresh.rates.likelihood import best_evidence, rate_grid
from afresh.rates.poll_table import PollTable
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.values.arrays import Bools, Float64s, Ints

FEWEST_POLLS = 8  # of an item; fewer show no jump
SURE = 0.95  # least probability of a jump for a mark
UNSURE = 0.02  # below this probability of a jump, an item's polls keep their full weight
JUMPED, STEADY = 0.5, 9.5  # the prior knowledge of the share of items that jumped, in items
CAUTION = 0.5  # taken off ln of each Bayes factor, since rates are not distributed as on the grid
_SHARE_STEPS = 50
ENOUGH_JUMPS = 5.0  # expected jumps of all items from which on their times are learned
_TIMES = 100  # moments that are told apart
_PASSES = 3
MOST_HAZARD = 0.9
_ROWS = 1 << 15  # polls at a time, so that their tables take some 12 MB each


@dataclass(frozen=True, slots=True)
class SharpChanges:
    """The sharp changes of rates in a table of polls.

    ``probability`` for each item that its rate jumped at least once.
    ``item``, ``poll`` are the marks, sorted: row ``poll`` of the table is the first poll of a new period of
    ``item``. Only items whose probability is at least ``SURE`` have marks.
    ``weight`` for each poll the probability that it belongs to its item's present period; None if all are 1.
    """

    probability: Float64s
    item: Ints
    poll: Ints
    weight: Float64s | None

    def weigh(self, polls: PollTable, horizon: float = math.inf, latest: float | None = None) -> PollTable:
        """Return the polls with weights that make their estimates those of today's rates. Polls of an item
        with a mark count as they belong to its present period; those of other items fade besides with their
        age, to 1/e within the ``horizon``. ``latest`` is as in ``poll_ages``."""
        plain = replace(polls, weight=None)
        faded = polls if math.isinf(horizon) else weigh_by_age(plain, horizon, latest)
        if self.weight is None:
            return faded
        marked = np.zeros(polls.items, dtype=bool)
        marked[self.item] = True
        weight = (
            self.weight
            if faded.weight is None
            else self.weight * np.where(marked[polls.item], 1.0, faded.weight)
        )
        return replace(polls, weight=weight)

    @property
    def doubtful(self) -> Ints:
        """The items whose rate may have jumped or not: too likely to be left out, too unsure for a mark."""
        if self.weight is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self.probability >= UNSURE) & (self.probability < SURE))

    def weigh_if_jumped(self, polls: PollTable) -> PollTable:
        """Return the polls of the ``doubtful`` items, each with the weight that it has if the rate of its
        item did jump: the probability that it belongs to the present period then."""
        assert self.weight is not None
        own = np.isin(polls.item, self.doubtful)
        given = 1.0 - (1.0 - self.weight[own]) / self.probability[polls.item[own]]
        chosen = np.zeros(polls.items, dtype=bool)
        chosen[self.doubtful] = True
        return replace(polls.of_items(chosen), weight=np.clip(given, 0.0, 1.0))

    def present(self, polls: PollTable) -> PollTable:
        """Return only the polls after the last mark of each item, for estimators that do not weight polls."""
        return polls.of_polls(self._is_present(polls)) if self.item.size else polls

    def _is_present(self, polls: PollTable) -> Bools:
        """Return which polls belong to the present period of their item, according to the marks."""
        first = np.zeros(polls.items, dtype=np.int64)
        np.maximum.at(first, self.item, self.poll)
        return np.arange(polls.size) >= first[polls.item]

    def periods(self, polls: PollTable) -> Float64s:
        """Return T_λ so far for each item: the time since the last poll before its last sharp change.
        Without a mark it is the time over which the item was polled."""
        own = self._is_present(polls)
        return np.asarray(np.bincount(polls.item[own], polls.elapsed[own], minlength=polls.items), np.float64)


def no_sharp_changes(items: int) -> SharpChanges:
    """Return the result for items whose rates did not jump."""
    none = np.zeros(0, np.int64)
    return SharpChanges(np.zeros(items), none, none, None)


@dataclass(frozen=True, slots=True)
class JointJumps:
    """What many items show together: the ``share`` of items whose rate jumped, and when. ``profile`` is in
    proportion to h of a poll in each period of time; the periods are divided by the times ``cuts``."""

    share: float
    cuts: Float64s
    profile: Float64s

    def hazard(self, polls: PollTable) -> Float64s:
        """Return h of each poll; for every item h adds up to about 1."""
        assert polls.end is not None
        share = self.profile[np.searchsorted(self.cuts, polls.end)]
        whole = np.bincount(polls.item, share, minlength=polls.items)[polls.item]
        return np.asarray(np.minimum(share / whole, MOST_HAZARD))


@dataclass(frozen=True, slots=True)
class LearnedJumps:
    """What a sample of items shows of jumps: the ``share`` of items whose rate jumped, and when many jumped
    together (``joint``, None if few did)."""

    share: float
    joint: JointJumps | None


def learn_jumps(polls: PollTable, rates: Float64s) -> LearnedJumps | None:
    """Return what these items show of jumps; None if none of them has enough polls."""
    enough = _enough(polls)
    if not enough.any():
        return None
    probability, _, joint = _learn_jumps(polls.of_items(enough), rates)
    share = (JUMPED + float(probability.sum())) / (JUMPED + STEADY + probability.size)
    return LearnedJumps(share, joint)


def _enough(polls: PollTable) -> Bools:
    """Return which items have ``FEWEST_POLLS`` polls and a change."""
    changes = np.bincount(polls.item[polls.changed], minlength=polls.items)
    return np.asarray((polls.polls_per_item() >= FEWEST_POLLS) & (changes > 0))


def find_sharp_changes(
    polls: PollTable,
    rates: Float64s | None = None,
    joint: JointJumps | None = None,
    share: float | None = None,
) -> SharpChanges:
    """Find the sharp changes of every item's rate. If the grid of ``rates`` is given, each item is judged by
    its own polls and by what is known of the ``joint`` jumps of others (or of the ``share`` of items that
    jumped, if few did), so that the result does not depend on the other items of the table.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> found = np.arange(60) % 15 == 0
    >>> found[40:] = True
    >>> jumped = find_sharp_changes(polls_from_intervals(np.ones(60), found, item=np.zeros(60, dtype=int)))
    >>> jumped.poll.tolist(), bool(jumped.probability[0] > 0.99)
    ([40], True)
    """
    none = np.zeros(0, np.int64)
    enough = _enough(polls)
    if not enough.any():
        return SharpChanges(np.zeros(polls.items), none, none, None)
    found = _search(polls if enough.all() else polls.of_items(enough), rates, joint, share)
    if enough.all():
        return found
    rows, items = np.flatnonzero(enough[polls.item]), np.flatnonzero(enough)
    probability, weight = np.zeros(polls.items), None
    probability[enough] = found.probability
    if found.weight is not None:
        weight = np.ones(polls.size)
        weight[rows] = found.weight
    return SharpChanges(probability, items[found.item], rows[found.poll], weight)


def _learn_jumps(polls: PollTable, rates: Float64s) -> tuple[Float64s, Float64s, JointJumps | None]:
    """Return a tuple: the probability of each item that it jumped, h of each poll, and what the items show
    together (None if few jumped)."""
    hazard, joint = (1 / np.maximum(polls.polls_per_item(), 1))[polls.item], None
    for _ in range(_PASSES):
        factor = _log_bayes_factors(polls, rates, hazard)
        probability = _probabilities(factor)
        if probability[probability >= 0.5].sum() < ENOUGH_JUMPS or polls.end is None:
            return probability, hazard, None
        jumps = [_Chains.of(part, rates, hazard[rows]).last_jumps() for _, rows, part in _parts(polls)]
        joint = _share_out(polls, np.concatenate(jumps) * probability[polls.item], probability)
        hazard = joint.hazard(polls)
    return probability, hazard, joint


def _log_bayes_factors(polls: PollTable, rates: Float64s, hazard: Float64s) -> Float64s:
    chains = (_Chains.of(part, rates, hazard[rows]) for _, rows, part in _parts(polls))
    return np.concatenate([chain.log_bayes_factor() for chain in chains])


def _search(
    polls: PollTable, given: Float64s | None, joint: JointJumps | None, share: float | None
) -> SharpChanges:
    """Find the sharp changes of items that each have ``FEWEST_POLLS`` polls and a change."""
    if given is None:
        rates = rate_grid(polls)
        probability, hazard, _ = _learn_jumps(polls, rates)
    else:
        rates, even = given, (1 / np.maximum(polls.polls_per_item(), 1))[polls.item]
        hazard = even if joint is None else joint.hazard(polls)
        share = share if joint is None else joint.share
        probability = _probabilities(_log_bayes_factors(polls, rates, hazard), is_alone=True, share=share)
    unsure = probability >= UNSURE
    if not unsure.any():
        none = np.zeros(0, np.int64)
        return SharpChanges(probability, none, none, None)
    weight, items, marks = np.ones(polls.size), [], []
    for own, rows, part in _parts(polls):
        chains, chance = _Chains.of(part, rates, hazard[rows]), probability[own]
        same = chains.same_period(part.polls_per_item())
        # Where a jump is sure, the polls before it must not count at all, however many they are.
        chance = np.where(chance >= SURE, 1.0, np.where(chance >= UNSURE, chance, 0.0))
        weight[rows] = 1 - chance[part.item] * (1 - same)
        item, poll = chains.marks(chance >= SURE)
        items.append(own.start + item)
        marks.append(rows.start + poll)
    item, poll = np.concatenate(items), np.concatenate(marks)
    order = np.argsort(poll)
    return SharpChanges(probability, item[order], poll[order], weight)


def _share_out(polls: PollTable, jumps: Float64s, probability: Float64s) -> JointJumps:
    """Return the share of items that jumped, and h over time, given the expected last ``jumps`` just before
    each poll: in proportion to the jumps of all items at that time, and partly evenly."""
    assert polls.end is not None
    number = np.maximum(polls.polls_per_item(), 1)[polls.item]
    cuts = np.unique(np.quantile(polls.end, np.linspace(0, 1, _TIMES + 1)[1:-1]))
    moment = np.searchsorted(cuts, polls.end)
    made, seen = (np.bincount(moment, values, minlength=cuts.size + 1) for values in (jumps, 1 / number))
    profile = (made + ENOUGH_JUMPS * seen / seen.sum()) / np.maximum(seen, 1e-300)
    share = (JUMPED + float(probability.sum())) / (JUMPED + STEADY + probability.size)
    # No poll of these items lies in some periods; those of others there have the hazard of the mean.
    return JointJumps(share, cuts, np.where(seen > 0, profile, profile[seen > 0].mean()))


def _parts(polls: PollTable) -> Iterator[tuple[slice, slice, PollTable]]:
    """Yield tuples (items, polls, table): ranges of items with about ``_ROWS`` polls, and these polls."""
    last = np.append(0, np.cumsum(polls.polls_per_item()))
    first = 0
    while first < polls.items:
        end = max(first + 1, int(np.searchsorted(last, last[first] + _ROWS, side="right")) - 1)
        yield slice(first, end), slice(int(last[first]), int(last[end])), polls.between(first, end)
        first = end


def _probabilities(log_factor: Float64s, *, is_alone: bool = False, share: float | None = None) -> Float64s:
    """Return the probability of each item that it jumped, given ln of its Bayes factor. The share of items
    that jumped is the most probable one, where ``JUMPED`` of ``JUMPED`` + ``STEADY`` items are known before.
    If each item ``is_alone``, only its own factor and these known items, or a known ``share``, count.

    >>> _probabilities(np.array([-1.0] * 99 + [20.0])).round(3)[[0, -1]].tolist()
    [0.008, 1.0]
    """
    share = JUMPED / (JUMPED + STEADY) if share is None else share
    chance = log_factor
    for _ in range(_SHARE_STEPS):
        odds = np.clip(log_factor + math.log(share / (1 - share)), -700, 700)
        chance = 1 / (1 + np.exp(-odds))
        if is_alone:
            break
        share = (JUMPED + float(chance.sum())) / (JUMPED + STEADY + chance.size)
    return chance


@dataclass(frozen=True, slots=True)
class _Chains:
    """The forward recursion of several items. ``total`` is, for each poll, the sum of ln L over the item's
    polls up to it, at each rate, and ``stayed`` the sum of ln(1−h). ``forward`` is α after each poll, scaled
    to a sum of 1, and ``log_scale`` ln Σα before it was scaled. ``starts`` is each item's first poll."""

    item: Ints
    rank: Ints
    starts: Ints
    stayed: Float64s
    total: Float64s
    forward: Float64s
    log_scale: Float64s

    @classmethod
    def of(cls, polls: PollTable, rates: Float64s, hazard: Float64s) -> _Chains:
        table = _log_likelihoods(polls, rates)
        rank = rank_within(run_starts(polls.item))
        tops = table.max(axis=1)
        likelihood, moves = np.exp(table - tops[:, None]), np.where(rank > 0, hazard, 0.0)
        forward, total, log_scale, stayed = (np.empty_like(column) for column in (table, table, tops, tops))
        alpha, summed = (
            np.full((polls.items, rates.size), 1 / rates.size),
            np.zeros((polls.items, rates.size)),
        )
        scale, stays = np.zeros(polls.items), np.zeros(polls.items)
        for these in rounds(rank):
            own, move = polls.item[these], moves[these]
            following = likelihood[these] * ((1 - move)[:, None] * alpha[own] + (move / rates.size)[:, None])
            norm = following.sum(axis=1)
            alpha[own] = forward[these] = following / norm[:, None]
            scale[own] += np.log(norm) + tops[these]
            stays[own] += np.log1p(-move)
            summed[own] += table[these]
            log_scale[these], stayed[these], total[these] = scale[own], stays[own], summed[own]
        starts = np.searchsorted(polls.item, np.arange(polls.items))
        return cls(polls.item, rank, starts, stayed, total, forward, log_scale)

    def _last(self, number: Ints) -> Ints:
        """Return the row of poll ``number`` of each item, counted from 1."""
        return np.minimum(self.starts + np.maximum(number, 1) - 1, self.item.size - 1)

    def _steady(self, last: Ints) -> Float64s:
        """Return ln of the probability of each item's polls up to row ``last`` if its rate is steady."""
        final = self.total[last]
        top = final.max(axis=1)
        return np.asarray(top + np.log(np.mean(np.exp(final - top[:, None]), axis=1)))

    def never(self, number: Ints) -> Float64s:
        """Return the probability that an item's rate never jumped in its first ``number`` polls."""
        last = self._last(number)
        return np.exp(np.minimum(self._steady(last) + self.stayed[last] - self.log_scale[last], 0.0))

    def log_bayes_factor(self) -> Float64s:
        """Return ln of the Bayes factor of a rate that jumped against a steady one."""
        number = np.bincount(self.item, minlength=self.starts.size)
        last = self._last(number)
        with np.errstate(divide="ignore", invalid="ignore"):
            jumped = np.log1p(-self.never(number)) - np.log(-np.expm1(self.stayed[last]))
            factor = self.log_scale[last] + jumped - self._steady(last)
        return np.asarray(np.nan_to_num(factor, nan=-np.inf) - CAUTION)

    def same_period(self, number: Ints) -> Float64s:
        """Return for each poll among the first ``number`` of its item the probability that it belongs to the
        period of the last of them, given that there was a jump among them; 0 for later polls."""
        last = self._last(number)[self.item]
        later = (self.stayed[last] - self.stayed + self.log_scale - self.log_scale[last])[:, None]
        later = np.minimum(self.total[last] - self.total + later, 700.0)
        same = np.minimum(np.sum(self.forward * np.exp(later), axis=1), 1.0)
        # P(no jump since poll k, given a jump) = (w_k − w_0)/(1 − w_0), where w_0 is for no jump at all.
        never = self.never(number)[self.item]
        with np.errstate(invalid="ignore", divide="ignore"):
            given = np.where(never < 1, np.clip((same - never) / (1 - never), 0.0, 1.0), 1.0)
        return np.where(self.rank < number[self.item], given, 0.0)

    def last_jumps(self) -> Float64s:
        """Return the probability that an item's last jump was just before each of its polls, given a jump."""
        same = self.same_period(np.bincount(self.item, minlength=self.starts.size))
        return np.where(self.rank > 0, np.maximum(same - np.append(0.0, same[:-1]), 0.0), 0.0)

    def marks(self, chosen: Bools) -> tuple[Ints, Ints]:
        """Return a tuple (item, poll) of arrays: the first poll of every period but the first, for ``chosen``
        items. The last sharp change is looked for first, then the one before it among the polls before it."""
        number = np.where(chosen, np.bincount(self.item, minlength=self.starts.size), 0)
        found = [(self.starts[:0], self.starts[:0])]
        while number.any():
            old = (self.same_period(number) < 0.5) & (self.rank < number[self.item])
            before = np.bincount(self.item[old], minlength=self.starts.size)
            jumped = np.flatnonzero((before > 0) & (number > 0))
            found.append((jumped, self.starts[jumped] + before[jumped]))
            number = np.where(number > 0, before, 0)
            number[(number < FEWEST_POLLS) | (self.never(number) > 1 - SURE)] = 0
        item, poll = (np.concatenate(columns) for columns in zip(*found, strict=True))
        return item, poll


def _log_likelihoods(polls: PollTable, rates: Float64s) -> Float64s:
    """Return ln L of each poll (row) at each rate (column), from the best evidence that it has."""
    evidence = best_evidence(replace(polls, weight=None))
    table = -evidence.exposure[:, None] * rates
    if np.any(evidence.events):
        table += evidence.events[:, None] * np.log(rates)
    bit = evidence.bit
    table[bit] = np.log(-np.expm1(-polls.elapsed[bit][:, None] * rates))
    return table
