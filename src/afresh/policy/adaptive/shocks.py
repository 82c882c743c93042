"""Shocks: events that change many items of a family at once, such as mass edits and joint releases.

Besides its own rate an item feels the intensity h(t) of each of its families, constant on bins of time:
E = λτ + ∫h. In each bin h has a Gamma prior of scale 1 and mean h₀, so that most bins are empty and a few
matter; with D polls of the family over the bin and A of the changes found ascribed to it, the posterior is
Gamma(h₀+A, 1+D), and an unpolled member's survival over the bin is (1+1/(1+D))^{−(h₀+A)}. Changes found are
shared out between the item's own rate and the bins in proportion to what each was expected to bring (one step
of EM per poll); h₀ is learned for each family, shrunk to that of all families of its kind.

Whether a family has shocks at all is learned as well: each weighs the two models by how well they predicted
its polls, starting from the share of its kind that has them. Without structure the weight goes to "none", and
nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints

BINS = 128
WIDTH = 0.06  # of a bin, in mean intervals between polls of an item
FIRST_MEAN = 1e-2  # h₀ before anything is known
SHRINK = 50.0  # bins' worth of all families in the h₀ of each
DOUBT = (0.02, 0.3)  # families' worth of doubt in the share that has shocks: of their number, and flat
STEPS = 30  # of EM for that share
RAISED = 0.02  # a rise of the intensity that makes a family's members worth a look
DEEPEST = 20.0  # evidence (ln) beyond which no more is counted, so that a family can change its ways


@dataclass(frozen=True, slots=True)
class ShockExposure:
    """What each item (row) has felt of each of its families (column) since its last poll.

    ``family`` is the families' place, ``raw`` the changes expected if they have shocks, ``mixed`` the same
    weighed by whether they have: −ln(w·e^{−raw} + 1 − w).
    """

    family: Ints
    raw: Float64s
    mixed: Float64s

    def total(self) -> Float64s:
        """Over all families of an item."""
        return np.asarray(self.mixed.sum(axis=1))


class Shocks:
    """The shocks of all families; ``families`` has a row per item, a column per kind, −1 for none.

    >>> shocks = Shocks(np.zeros((8, 1), dtype=np.int64), interval=10.0, now=0.0)
    >>> seven, changed = np.arange(7), np.ones(7, dtype=bool)
    >>> for day in range(10, 90, 10):                          # seven change together, again and again
    ...     since, now = np.full(7, day - 5.0), np.full(7, day + 0.0)
    ...     risen = shocks.learn(shocks.felt(seven, since, now), since, now, changed, np.full(7, 0.1))
    >>> eighth = shocks.felt(np.array([7]), np.array([75.0]), np.array([80.0]))
    >>> bool(eighth.total()[0] > 0.3), risen.tolist()
    (True, [0, 1, 2, 3, 4, 5, 6, 7])
    """

    COMMON = ("width", "origin", "share", "pool")
    TABLES = ("all_found", "all_seen", "evidence", "found", "seen")
    all_found: Float64s
    all_seen: Float64s
    evidence: Float64s
    found: Float64s
    seen: Float64s

    def __init__(self, families: Ints, interval: float, now: float) -> None:
        self.width = WIDTH * interval
        self.origin = float(np.floor(now / self.width))
        self.numbers = families.copy()
        self.share: Float64s = np.full(families.shape[1], 0.5)
        self.pool: Float64s = np.full(families.shape[1], FIRST_MEAN)
        self.kind: Ints = np.zeros(0, dtype=np.int64)
        for name in ("all_found", "all_seen", "evidence", "mean", "weight"):
            setattr(self, name, np.zeros(0))
        for name, columns in (("found", BINS), ("seen", BINS), ("sums", BINS + 1)):
            setattr(self, name, np.zeros((0, columns)))
        self._place()

    mean: Float64s
    weight: Float64s
    sums: Float64s

    def felt(self, items: Ints, since: Float64s, now: Float64s) -> ShockExposure:
        """What these items have felt from ``since`` to ``now``."""
        family = self.family[items]
        raw = np.maximum(self._until(family, now) - self._until(family, since), 0.0)
        return ShockExposure(family, raw, -np.log1p(self.weight[family] * np.expm1(-raw)))

    def rate(self, items: Ints) -> Float64s:
        """Mean rate of changes by shocks."""
        family = self.family[items]
        rate: Float64s = (self.weight[family] * self.mean[family]).sum(axis=1) / self.width
        return rate

    def learn(
        self, felt: ShockExposure, since: Float64s, now: Float64s, changed: Bools, own: Float64s
    ) -> Ints:
        """Polls of items that expected ``own`` changes by themselves. Returns items now worth a look."""
        families = self.kind.size
        rest = np.maximum((own + felt.total())[:, None] - felt.mixed, 1e-12)
        row, column = np.nonzero(felt.family < families)
        if row.size == 0:
            return np.zeros(0, dtype=np.int64)
        family, raw, other = felt.family[row, column], felt.raw[row, column], rest[row, column]
        found = changed[row]
        surer = np.expm1(-(other + raw)) / np.expm1(-other)
        self.evidence += np.bincount(family, np.where(found, np.log(surer), -raw), families + 1)
        np.clip(self.evidence, -DEEPEST, DEEPEST, out=self.evidence)
        events = np.where(found, -1.0 / np.expm1(-(other + raw)), 0.0)
        touched, place = np.unique(family, return_inverse=True)
        latest = np.full(touched.size, now.max())
        before = self.weight[touched] * self._until(touched, latest)
        self._add(touched, place, since[row], now[row], events)
        self._update(touched)
        rise = self.weight[touched] * self._until(touched, latest) - before
        return self._members(touched[rise > RAISED])

    def advance(self, now: float) -> None:
        """Make room for bins up to ``now``; the oldest are forgotten."""
        beyond = int(np.floor(now / self.width) - self.origin) - (BINS - 2)
        if beyond <= 0:
            return
        shift = beyond + BINS // 4
        kept = max(BINS - shift, 0)
        for table in (self.found, self.seen):
            table[:, :kept] = table[:, BINS - kept :].copy()
            table[:, kept:] = 0.0
        self.origin += shift
        self._sum(np.arange(self.kind.size))

    def refit(self) -> None:
        """The share of families that have shocks, and their mean intensity, for each kind of family."""
        kinds = self.share.size
        number = np.bincount(self.kind, minlength=kinds)
        doubt = DOUBT[0] * number + DOUBT[1]
        weight = self.weight[:-1]
        # To the end, not a step at each refit: families of which little is known only repeat the share.
        for _ in range(STEPS):
            self.share = (np.bincount(self.kind, weight, kinds) + doubt) / (number + 2.0 * doubt)
            weight = self._believed(np.arange(self.kind.size))
        found = np.bincount(self.kind, weight * self.all_found[:-1], kinds)
        seen = np.bincount(self.kind, weight * self.all_seen[:-1], kinds)
        self.pool = (found + SHRINK * FIRST_MEAN) / (seen + SHRINK)
        self.renew()

    def renew(self) -> None:
        """Draw the conclusions from what was counted, for all families."""
        self._update(np.arange(self.kind.size))

    def grow(self, families: Ints) -> None:
        """New items, in families known or new."""
        self.numbers = np.concatenate([self.numbers, families])
        self._place()

    def _place(self) -> None:
        """Give every family of every kind its row; the last row is that of no family and feels nothing."""
        known = self.kind.size
        label = self.numbers * self.share.size + np.arange(self.share.size)
        belongs = self.numbers >= 0
        if known == 0:
            self.labels: Ints = np.zeros(0, dtype=np.int64)
        fresh = np.setdiff1d(label[belongs], self.labels)
        self.labels = np.concatenate([self.labels, fresh])
        self.kind = np.concatenate([self.kind, fresh % max(self.share.size, 1)])
        for name in ("all_found", "all_seen", "evidence", "mean", "weight", "found", "seen", "sums"):
            table = getattr(self, name)[:known]
            room = np.zeros((fresh.size + 1, *table.shape[1:]))
            setattr(self, name, np.concatenate([table, room]))
        order = np.argsort(self.labels)
        at = np.searchsorted(self.labels[order], np.where(belongs, label, -1))
        self.family: Ints = np.where(belongs, np.append(order, 0)[at], self.kind.size)
        flat = self.family.T.ravel()
        self.member_order = np.argsort(flat, kind="stable")
        self.first_member = np.searchsorted(flat[self.member_order], np.arange(self.kind.size + 1))
        self.renew()

    def _until(self, family: Ints, time: Float64s) -> Float64s:
        """∫h from the first bin to ``time``, a row of families each; before the first bin the mean counts."""
        place = time / self.width - self.origin
        column = np.minimum(np.maximum(place, 0.0).astype(np.int64), BINS - 1)
        part = place - column
        if family.ndim == 2:
            column, part, place = column[:, None], part[:, None], place[:, None]
        left = self.sums[family, column]
        inside = left + (self.sums[family, column + 1] - left) * part
        return np.where(place < 0, place * self.mean[family], inside)

    def _add(self, touched: Ints, place: Ints, since: Float64s, now: Float64s, events: Float64s) -> None:
        """Each poll adds its time to the bins it covers, and its events in proportion to their intensity."""
        rows, ends = np.tile(place, 2), np.concatenate([now, since]) / self.width - self.origin
        sign = np.repeat([1.0, -1.0], now.size)  # up to now, less what was before
        shape = touched.size, BINS
        seen = np.maximum(_covered(shape, rows, ends, sign), 0.0)
        drawn = np.maximum(_covered(shape, rows, ends, sign * np.tile(events, 2)), 0.0)
        found = drawn * np.diff(self.sums[touched], axis=1)
        self.seen[touched] += seen
        self.found[touched] += found
        self.all_seen[touched] += seen.sum(axis=1)
        self.all_found[touched] += found.sum(axis=1)

    def _update(self, rows: Ints) -> None:
        kind = self.kind[rows]
        self.mean[rows] = (SHRINK * self.pool[kind] + self.all_found[rows]) / (SHRINK + self.all_seen[rows])
        self.weight[rows] = self._believed(rows)
        self._sum(rows)

    def _believed(self, rows: Ints) -> Float64s:
        """The probability that these families have shocks."""
        share = self.share[self.kind[rows]]
        odds = np.log(share / (1.0 - share)) + self.evidence[rows]
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def _sum(self, rows: Ints) -> None:
        felt = (self.mean[rows, None] + self.found[rows]) * np.log1p(1.0 / (1.0 + self.seen[rows]))
        self.sums[rows, 1:] = np.cumsum(felt, axis=1)

    def _members(self, families: Ints) -> Ints:
        """All items of these families."""
        parts = [self.member_order[self.first_member[one] : self.first_member[one + 1]] for one in families]
        return np.unique(np.concatenate(parts) % len(self.numbers)) if parts else np.zeros(0, dtype=np.int64)


def _covered(shape: tuple[int, int], row: Ints, place: Float64s, weight: Float64s) -> Float64s:
    """Σ weight × the part of each bin that lies before ``place``.

    >>> _covered((1, 4), np.array([0]), np.array([2.5]), np.array([1.0])).tolist()
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
