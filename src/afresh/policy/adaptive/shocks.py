"""Shocks: events that change many items of a family at once, such as mass edits and joint releases.

An item changes by its own rate λ and by the shocks of each of its families. The shocks of a family have an
intensity h(t), which is constant within each bin of time. So E = λτ + ∫h changes are expected in a time τ. In
each bin h has a Gamma prior of scale 1 and mean h₀, so that most bins are nearly empty and a few matter. Let
D polls of the family cover a bin, and let A of the changes that they found be attributed to it. Then the
posterior of h is Gamma(h₀+A, 1+D), and an item of the family that was not polled stays unchanged in this bin
with the probability (1+1/(1+D))^{−(h₀+A)}. A found change is divided between the item's own rate and the bins
in proportion to the changes that were expected from each (one step of EM per poll). h₀ is learned for each
family and pulled towards the mean of all families of its kind.

The items of a family differ: an edit of a large directory changes some of its pages, and often the same ones.
So an item is exposed to q·h of each of its families only. The member share q is (A + a)/(X + a), where A is
the number of the item's changes that were attributed to its families, X the number that q = 1 let expect, and
a = ``MEMBER_CAUTION``. Its polls count q-fold for its families. Without q, every find would send polls to
items that the shocks never change.

Whether a family has shocks at all is also learned. Each family has a probability that it has shocks. It
starts at the share of the families of its kind that have shocks, and rises or falls with how well the model
with shocks predicts the family's polls. If items do not change together, it falls towards 0 and does no harm.

The last kind of family may be *general*: one family of all items. An edit of many pages whose names have
nothing in common raises its intensity, and the member shares say which items such edits usually change. A
found change is attributed to the general family only as far as the narrower families do not explain it.
Otherwise the polls that are sent to one edited directory would raise the intensity of all items. But a
narrower family must predict more than the general family does already, or its probability falls: the families
of names that say nothing feel every large edit as well. An item that changes more often by itself is assumed
to take part in more edits, until its polls tell. So a in the numerator of its share of the general family is
multiplied by its own rate over the mean rate of all items. Otherwise a few finds among thousands of slow
items would raise the poll values of all slow items alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints

BINS = 128
WIDTH = 0.06  # of a bin, in mean polling intervals of an item
FIRST_MEAN = 1e-2  # h₀ before any poll
SHRINK = 50.0  # the mean of all families counts as much as this many observed bins in the h₀ of each family
# Pseudo-families with and without shocks in the share that has shocks: for each family, and a constant.
DOUBT = (0.02, 0.3)
STEPS = 30  # of EM for that share
# The tables of the families, and how many columns each has; 0 means that it is a vector.
TABLES = dict.fromkeys(("total_found", "total_seen", "evidence", "mean", "probability", "unreviewed_rise"), 0)
TABLES |= {"found": BINS, "seen": BINS, "cumulative": BINS + 2}
RAISED = 0.005  # if a family's expected changes rise by more than this, all its items are reviewed at once
GENERAL_RAISED = 0.02  # the same for the general family: to review all items takes a second per million
DEEPEST = 20.0  # limit of the log-evidence, so that a family that begins or ceases to have shocks is noticed
MEMBER_CAUTION = 0.3  # a: pseudo-changes, attributed as expected, with which the member share q begins at 1
ROUNDS = 4.0  # rounds of all items after which the evidence for families in general has faded by a factor e
# How much a poll counts as evidence for families in general. One edit decides the results of many polls, so
# these are not independent. Counted in full, the trust in families jumped between 0 and 1 with each edit.
EVIDENCE_OF_POLL = 0.03
LARGEST_PRIOR = 5.0  # limit of an item's own rate over the mean rate, in its share of the general family
FEWEST_IN_GENERAL = 20  # items of a general family, at least


@dataclass(frozen=True, slots=True)
class ShockExposure:
    """The shocks of each of its families (column) that each item (row) was exposed to since its last poll.

    ``family`` is the row of the family, ``raw`` the changes expected if it has shocks, ``mixed`` the same
    weighed by the probability w that it has: −ln(w·e^{−raw} + 1 − w). Both are multiplied by the
    ``member_share`` q of the item in the family, ``raw`` before it is weighed. ``cell`` and ``part`` are
    where the time of the last poll and now are in the cumulated intensity.
    """

    items: Ints
    member_share: Float64s
    family: Ints
    raw: Float64s
    mixed: Float64s
    cell: Ints
    part: Float64s

    def total(self, trust: float = 1.0) -> Float64s:
        """Return the changes expected of each item by all its families: −ln(trust·e^{−S} + 1 − trust).
        S is the sum of ``mixed`` over the item's families, ``trust`` the probability that families matter."""
        every = self.mixed.sum(axis=1)
        return np.asarray(every if trust == 1.0 else -np.log1p(trust * np.expm1(-every)))


def family_labels(families: Ints) -> Ints:
    """Return one number for each family and kind of family, from an array with a column for each kind."""
    return np.asarray(families * families.shape[1] + np.arange(families.shape[1]))


def with_general_family(families: Ints, items: int) -> Ints:
    """Return ``families`` with one more column: the general family, to which all items belong. It has no
    members if there are few ``items`` in all: then one busy item would make most of its changes.

    >>> with_general_family(np.array([[7], [-1]]), items=100).tolist()
    [[7, 0], [-1, 0]]
    >>> with_general_family(np.array([[7], [-1]]), items=2).tolist()
    [[7, -1], [-1, -1]]
    """
    number = 0 if items >= FEWEST_IN_GENERAL else -1
    return np.pad(families, ((0, 0), (0, 1)), constant_values=number)


class Shocks:
    """The shocks of all families.
    ``families`` holds the number of each item's family (−1 for none), with a row per item and a column per
    kind of family. ``interval`` is the mean polling interval of an item, ``now`` the time of the start. With
    ``is_last_general`` the last column is the general family (``with_general_family``).

    >>> shocks = Shocks(np.zeros((8, 1), dtype=np.int64), interval=10.0, now=0.0)
    >>> seven, changed = np.arange(7), np.ones(7, dtype=bool)
    >>> for day in range(10, 90, 10):                          # seven change together, again and again
    ...     since, now = np.full(7, day - 5.0), np.full(7, day + 0.0)
    ...     risen = shocks.learn(shocks.exposure(seven, since, now), since, now, changed, np.full(7, 0.1))
    >>> eighth = shocks.exposure(np.array([7]), np.array([75.0]), np.array([80.0]))
    >>> bool(eighth.total()[0] > 0.3), risen.tolist()
    (True, [0, 1, 2, 3, 4, 5, 6, 7])
    """

    # Each table has a row per family, and a last row for items without a family, which stays empty.
    total_found: Float64s
    total_seen: Float64s
    evidence: Float64s
    mean: Float64s
    probability: Float64s
    unreviewed_rise: Float64s
    found: Float64s
    seen: Float64s
    cumulative: Float64s

    def __init__(self, families: Ints, interval: float, now: float, *, is_last_general: bool = False) -> None:
        self.is_last_general = is_last_general
        self.bin_width = WIDTH * interval
        self.first_bin = float(np.floor(now / self.bin_width))
        self.family_ids = families.copy()
        self.support = 0.0  # log-odds that families help to predict the results of polls
        self.share: Float64s = np.full(families.shape[1], 0.5)
        self.pooled_mean: Float64s = np.full(families.shape[1], FIRST_MEAN)
        self.kind: Ints = np.zeros(0, dtype=np.int64)
        self.labels: Ints = np.zeros(0, dtype=np.int64)
        for name, columns in TABLES.items():
            setattr(self, name, np.zeros((0, columns) if columns else 0))
        # Of each item: the changes that q = 1 let expect from its families, and those attributed to them.
        self.exposed: Float64s = np.zeros(len(families))
        self.felt: Float64s = np.zeros(len(families))
        # The own rate of each item over ``mean_own_rate``, the mean of all items; 0 until that is known.
        self.relative_rate: Float64s = np.ones(len(families))
        self.mean_own_rate = 0.0
        self._index_families()

    @property
    def trust(self) -> float:
        """The probability that families help to predict changes in this source."""
        return 1.0 / (1.0 + math.exp(-self.support))

    def compare(self, with_families: Float64s, without: Float64s, changed: Bools, alive: int) -> None:
        """Learn from polls whether families help to predict.
        ``with_families`` and ``without`` are the changes that were expected of each polled item with and
        without families, ``alive`` the number of items."""
        full, alone = np.maximum(with_families, 1e-9), np.maximum(without, 1e-9)
        surer = np.log(np.expm1(-full) / np.expm1(-alone))
        gain = float(np.where(changed, surer, alone - full).sum())
        faded = self.support * math.exp(-changed.size / (ROUNDS * max(alive, 1)))
        self.support = min(max(faded + EVIDENCE_OF_POLL * gain, -DEEPEST), DEEPEST)

    def exposure(self, items: Ints, since: Float64s, now: Float64s) -> ShockExposure:
        """Return the changes expected of these items by shocks from ``since`` to ``now``."""
        family = self._families_by_kind(items)
        place = np.array([now, since]) / self.bin_width - (self.first_bin - 1.0)
        column = np.minimum(np.maximum(place, 0.0).astype(np.int64), BINS)
        cell = family * (BINS + 2) + column[:, None]
        return self._exposure(items, family, cell, (place - column)[:, None])

    def exposure_now(self, exposure: ShockExposure) -> ShockExposure:
        """Return the exposure of the same polls by what was learned since."""
        return self._exposure(exposure.items, exposure.family.T, exposure.cell, exposure.part)

    def _families_by_kind(self, items: Ints) -> Ints:
        """Return the rows of the items' families, with a row per kind of family and a column per item: loops
        over arrays whose rows are long are several times faster than over many short rows."""
        return np.asarray(self.family_row.T.take(items, axis=1))

    def _exposure(self, items: Ints, family: Ints, cell: Ints, part: Float64s) -> ShockExposure:
        left = self.cumulative.take(cell)
        until_now, until_since = left + (self.cumulative.take(cell + 1) - left) * part
        share = self._shares(items)
        raw = share * np.maximum(until_now - until_since, 0.0)
        mixed = -np.log1p(self.probability.take(family) * np.expm1(-raw))
        return ShockExposure(items, share.T, family.T, raw.T, mixed.T, cell, part)

    def member_share(self, items: Ints) -> Float64s:
        """Return for each item the share q of its narrower families' shocks that it is exposed to."""
        return np.asarray((self.felt[items] + MEMBER_CAUTION) / (self.exposed[items] + MEMBER_CAUTION))

    def _shares(self, items: Ints) -> Float64s:
        """Return q of each item (column) in its family of each kind (row)."""
        shares = np.tile(self.member_share(items), (self.share.size, 1))
        if self.is_last_general:
            prior = MEMBER_CAUTION * self.relative_rate[items]
            shares[-1] = (self.felt[items] + prior) / (self.exposed[items] + MEMBER_CAUTION)
        return shares

    def set_own_rates(self, items: Ints, rates: Float64s) -> None:
        """Set the mean of each item's own rate, for its share of the general family."""
        if self.mean_own_rate > 0:
            self.relative_rate[items] = np.minimum(rates / self.mean_own_rate, LARGEST_PRIOR)

    def rate(self, items: Ints) -> Float64s:
        """Return the mean rate of changes by shocks for each item."""
        family = self._families_by_kind(items)
        rate: Float64s = self._shares(items) * self.probability.take(family) * self.mean.take(family)
        return np.asarray(rate.sum(axis=0) / self.bin_width)

    def excess(self, items: Ints, since: Float64s, now: float) -> Float64s:
        """Return by how much the changes expected of each item by shocks, from ``since`` to ``now``, exceed
        those that the mean rate of its families' shocks lets expect in this time."""
        expected = self.exposure(items, since, np.full(items.size, now)).total(self.trust)
        return np.asarray(expected - self.trust * self.rate(items) * np.maximum(now - since, 0.0))

    def learn(
        self, exposure: ShockExposure, since: Float64s, now: Float64s, changed: Bools, own: Float64s
    ) -> Ints:
        """Learn from polls; return the items to review, because the shocks of their families have risen.

        ``since`` are the times of the previous polls. ``own`` are the changes expected by the own rates.
        """
        rest = np.maximum((own + exposure.total())[:, None] - exposure.mixed, 1e-12)
        row, column = np.nonzero(exposure.family < self.kind.size)
        if row.size == 0:
            return np.zeros(0, dtype=np.int64)
        family, raw, other = exposure.family[row, column], exposure.raw[row, column], rest[row, column]
        found = changed[row]
        evidence = np.where(found, np.log(np.expm1(-(other + raw)) / np.expm1(-other)), -raw)
        changing = np.expm1(-(self._without_general(rest, exposure)[row, column] + raw))
        touched = np.unique(family)
        place = np.searchsorted(touched, family)
        total = self.evidence[touched] + np.bincount(place, evidence, touched.size)
        self.evidence[touched] = np.minimum(np.maximum(total, -DEEPEST), DEEPEST)
        latest = float(now.max())
        before = self.probability[touched] * self._integral(touched, latest)
        events, share = np.where(found, -1.0 / changing, 0.0), exposure.member_share[row, column]
        shocked = self.probability[family] * raw
        np.add.at(self.exposed, exposure.items[row], shocked / share)
        np.add.at(self.felt, exposure.items[row], shocked * events)
        self._count(touched, place, (since[row], now[row]), share, share * events)
        self._update(touched)
        rise = self.probability[touched] * self._integral(touched, latest) - before
        # The intensity of a large family rises in many small steps, so the steps are added up.
        unreviewed = np.maximum(self.unreviewed_rise[touched] + rise, 0.0)
        is_raised = unreviewed > self._rise_to_review(touched)
        self.unreviewed_rise[touched] = np.where(is_raised, 0.0, unreviewed)
        return self._members(touched[is_raised])

    def _rise_to_review(self, families: Ints) -> Float64s:
        """Return by how much the changes expected by each family may rise until its items are reviewed."""
        is_general = self.is_last_general & (self.kind[families] == self.share.size - 1)
        return np.where(is_general, GENERAL_RAISED, RAISED)

    def _without_general(self, rest: Float64s, exposure: ShockExposure) -> Float64s:
        """Return ``rest``, for the narrower families without what the general family lets expect."""
        if not self.is_last_general:
            return rest
        narrower = np.maximum(rest[:, :-1] - exposure.mixed[:, -1:], 1e-12)
        return np.concatenate([narrower, rest[:, -1:]], axis=1)

    def _members(self, families: Ints) -> Ints:
        """Return the items of these families; an item that is in two of them appears twice."""
        if families.size == 0:
            return families
        begin, end = self.first_member[families], self.first_member[families + 1]
        size = end - begin
        place = np.arange(size.sum()) + np.repeat(end - np.cumsum(size), size)
        return np.asarray(self.member_order[place] % len(self.family_ids))

    def advance(self, now: float) -> None:
        """Make room for bins up to ``now``, and forget the oldest bins."""
        beyond = int(np.floor(now / self.bin_width) - self.first_bin) - (BINS - 2)
        if beyond <= 0:
            return
        shift = beyond + BINS // 4
        kept = max(BINS - shift, 0)
        for table in (self.found, self.seen):
            table[:, :kept] = table[:, BINS - kept :].copy()
            table[:, kept:] = 0.0
        self.first_bin += shift
        self._accumulate(np.arange(self.kind.size))

    def refit(self) -> None:
        """Fit for each kind of family the share of families with shocks, and their mean intensity per bin."""
        kinds = self.share.size
        number = np.bincount(self.kind, minlength=kinds)
        doubt = DOUBT[0] * number + DOUBT[1]
        weight = self.probability[:-1]
        # EM runs until it converges: with one step, families with few polls would only repeat the old share.
        for _ in range(STEPS):
            self.share = (np.bincount(self.kind, weight, kinds) + doubt) / (number + 2.0 * doubt)
            weight = self._shock_probability(np.arange(self.kind.size))
        found = np.bincount(self.kind, weight * self.total_found[:-1], kinds)
        seen = np.bincount(self.kind, weight * self.total_seen[:-1], kinds)
        self.pooled_mean = (found + SHRINK * FIRST_MEAN) / (seen + SHRINK)
        self.update_all()

    def update_all(self) -> None:
        """Compute mean, probability and cumulated intensity of all families again from the counts."""
        self._update(np.arange(self.kind.size))

    def grow(self, families: Ints) -> None:
        """Add new items, in known or new families."""
        self.family_ids = np.concatenate([self.family_ids, families])
        self.exposed, self.felt = (
            np.concatenate([one, np.zeros(len(families))]) for one in (self.exposed, self.felt)
        )
        self.relative_rate = np.concatenate([self.relative_rate, np.ones(len(families))])
        self._index_families()

    def _index_families(self) -> None:
        """Give every family of every kind a row in the tables; the last row is for items without a family."""
        known = self.kind.size
        label = family_labels(self.family_ids)
        belongs = self.family_ids >= 0
        fresh = np.setdiff1d(label[belongs], self.labels)
        self.labels = np.concatenate([self.labels, fresh])
        self.kind = np.concatenate([self.kind, fresh % max(self.share.size, 1)])
        for name in TABLES:
            table = getattr(self, name)[:known]
            room = np.zeros((fresh.size + 1, *table.shape[1:]))
            setattr(self, name, np.concatenate([table, room]))
        order = np.argsort(self.labels)
        at = np.searchsorted(self.labels[order], np.where(belongs, label, -1))
        self.family_row: Ints = np.asfortranarray(np.where(belongs, np.append(order, 0)[at], self.kind.size))
        flat = self.family_row.T.ravel()
        self.member_order = np.argsort(flat, kind="stable")
        self.first_member = np.searchsorted(flat[self.member_order], np.arange(self.kind.size + 1))
        self.update_all()

    def _integral(self, family: Ints, time: float) -> Float64s:
        """Return the integral of each family's intensity from the first bin to ``time``, in expected changes.

        Before the first bin, the mean intensity of the family is used.
        """
        place = time / self.bin_width - (self.first_bin - 1.0)
        column = min(max(int(place), 0), BINS)
        left = self.cumulative[family, column]
        return np.asarray(left + (self.cumulative[family, column + 1] - left) * (place - column))

    def _count(
        self, touched: Ints, place: Ints, times: tuple[Float64s, Float64s], share: Float64s, events: Float64s
    ) -> None:
        """Add each poll's time to the bins it covers, and its events in proportion to their intensity.

        ``times`` are those of the previous polls and of these. A poll of an item with the member share q
        counts as ``share`` = q polls.
        """
        since, now = times
        hit = np.flatnonzero(events)
        struck = np.unique(place[hit])
        # A row for each family that was polled, and then one for each that had events.
        row = np.concatenate([place, touched.size + np.searchsorted(struck, place[hit])])
        weight = np.concatenate([share, events[hit]])
        ends = np.concatenate([now, now[hit], since, since[hit]]) / self.bin_width - self.first_bin
        shape = touched.size + struck.size, BINS
        # Up to now, less what was before.
        covered = covered_bins(shape, np.concatenate([row, row]), ends, np.concatenate([weight, -weight]))
        seen, drawn = np.split(np.maximum(covered, 0.0), [touched.size])
        self.seen[touched] += seen
        self.total_seen[touched] += seen.sum(axis=1)
        families = touched[struck]
        cumulative = self.cumulative[families]
        found = drawn * (cumulative[:, 2:] - cumulative[:, 1:-1])
        self.found[families] += found
        self.total_found[families] += found.sum(axis=1)

    def _update(self, rows: Ints) -> None:
        kind = self.kind[rows]
        found, seen = self.total_found[rows], self.total_seen[rows]
        self.mean[rows] = (SHRINK * self.pooled_mean[kind] + found) / (SHRINK + seen)
        self.probability[rows] = self._shock_probability(rows)
        self._accumulate(rows)

    def _shock_probability(self, rows: Ints) -> Float64s:
        share = self.share[self.kind[rows]]
        odds = np.log(share / (1.0 - share)) + self.evidence[rows]
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def _accumulate(self, rows: Ints) -> None:
        expected = (self.mean[rows, None] + self.found[rows]) * np.log1p(1.0 / (1.0 + self.seen[rows]))
        self.cumulative[rows, 0] = -self.mean[rows]  # a bin before the first one, for all the time before it
        self.cumulative[rows, 2:] = np.cumsum(expected, axis=1)


def covered_bins(shape: tuple[int, int], row: Ints, place: Float64s, weight: Float64s) -> Float64s:
    """Return a table of Σ weight × the part of each bin (column) that is before ``place``, for each row.
    ``shape`` is (rows, bins). The entries of ``row``, ``place`` (in bins) and ``weight`` belong together.

    >>> covered_bins((1, 4), np.array([0]), np.array([2.5]), np.array([1.0])).tolist()
    [[1.0, 1.0, 0.5, 0.0]]
    """
    rows, bins = shape
    inside = np.minimum(np.maximum(place, 0.0), bins)
    column = np.minimum(inside.astype(np.int64), bins - 1)
    cell = row * bins + column
    whole = np.bincount(cell, weight, rows * bins).reshape(shape)
    part = np.bincount(cell, weight * (inside - column), rows * bins).reshape(shape)
    later = np.cumsum(whole[:, ::-1], axis=1)[:, ::-1] - whole
    return np.asarray(later + part)
