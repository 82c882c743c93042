"""Shocks: events that change many items of a family at once, such as mass edits and joint releases.

Besides its own rate an item feels its family's intensity h(t), constant on bins of time: E = λτ + ∫h. In each
bin h has a Gamma prior of scale 1 and mean h₀, so that most bins are empty and a few matter; with D polls of
the family over the bin and A of the changes found ascribed to it, the posterior is Gamma(h₀+A, 1+D), and an
unpolled member's survival over the bin is (1+1/(1+D))^{−(h₀+A)}. Changes found are shared out between the
item's own rate and the bins in proportion to what each was expected to bring (one step of EM per poll); h₀ is
learned for each family, shrunk to that of all.

Whether a family has shocks at all is learned as well: each family weighs the two models by how well they
predicted its polls, starting from the share of all families that have them. Without structure the weight
goes to "none", and nothing is lost.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.observations import Bools, Float64s, Ints

BINS = 128
WIDTH = 0.06  # of a bin, in mean intervals between polls of an item
FIRST_MEAN = 1e-3  # h₀ before anything is known
SHRINK = 50.0  # bins' worth of all families in the h₀ of each
DOUBT = (0.02, 0.3)  # families' worth of doubt in the share that has shocks: of their number, and flat
RAISED = 0.02  # a rise of the intensity that makes a family's members worth a look
DEEPEST = -20.0  # evidence (ln) against shocks beyond which no more is counted, so that a family can return


class Shocks:
    """The shocks of one kind of family; ``family[i]`` of each item, −1 for none.

    >>> shocks = Shocks(np.zeros(8, dtype=np.int64), interval=10.0, now=0.0)
    >>> for _ in range(20):                                # all change together, again and again
    ...     shocks.advance(9.0)
    ...     shocks.learn(np.arange(7), np.zeros(7), np.full(7, 9.0), np.ones(7, dtype=bool), np.full(7, 0.1))
    >>> expected, _ = shocks.expected(np.array([7]), np.zeros(1), np.array([9.0]))
    >>> bool(expected[0] > 1.0)
    True
    """

    def __init__(self, family: Ints, interval: float, now: float) -> None:
        self.family = family.copy()
        self.width = WIDTH * interval
        self.origin = np.floor(now / self.width)
        families = int(family.max(initial=-1)) + 1
        self.found: Float64s = np.zeros((families, BINS))
        self.seen: Float64s = np.zeros((families, BINS))
        self.all_found: Float64s = np.zeros(families)
        self.all_seen: Float64s = np.zeros(families)
        self.evidence: Float64s = np.zeros(families)
        self.share, self.pool = 0.5, FIRST_MEAN
        self.mean: Float64s = np.full(families, FIRST_MEAN)
        self.weight: Float64s = np.full(families, self.share)
        self.sums: Float64s = np.zeros((families, BINS + 1))
        self._sum(np.arange(families))
        self._members()

    def expected(self, items: Ints, since: Float64s, now: Float64s) -> tuple[Float64s, Float64s]:
        """Changes that shocks are expected to have brought each item, and their mean rate.

        The models are mixed in survival: E = −ln(w·e^{−H} + 1 − w).
        """
        family = self.family[items]
        inside = family >= 0
        row = np.where(inside, family, 0)
        weight = np.where(inside, self.weight[row], 0.0) if self.weight.size else np.zeros(items.size)
        if not weight.any():
            return np.zeros(items.size), np.zeros(items.size)
        total = np.maximum(self._until(row, now) - self._until(row, since), 0.0)
        mixed = -np.log1p(weight * np.expm1(-total))
        return mixed, weight * self.mean[row] / self.width

    def learn(self, items: Ints, since: Float64s, now: Float64s, changed: Bools, rest: Float64s) -> Ints:
        """Polls of items; ``rest`` is what all else was expected to bring. Returns items worth a look."""
        inside = self.family[items] >= 0
        if not inside.any():
            return np.zeros(0, dtype=np.int64)
        row, since, now = self.family[items[inside]], since[inside], now[inside]
        changed, rest = changed[inside], np.maximum(rest[inside], 1e-12)
        total = np.maximum(self._until(row, now) - self._until(row, since), 0.0)
        ratio = np.expm1(-(rest + total)) / np.expm1(-rest)
        self.evidence += np.bincount(row, np.where(changed, np.log(ratio), -total), self.evidence.size)
        np.clip(self.evidence, DEEPEST, -DEEPEST, out=self.evidence)
        events = np.where(changed, 1.0 / -np.expm1(-(rest + total)), 0.0)
        touched, place = np.unique(row, return_inverse=True)
        before = self._felt(touched, now)
        self._add(touched, place, since, now, events)
        self._update(touched)
        risen = touched[self._felt(touched, now) - before > RAISED]
        return self._of(risen)

    def advance(self, now: float) -> None:
        """Make room for bins up to ``now``; the oldest are forgotten."""
        beyond = int(np.floor(now / self.width) - self.origin) - (BINS - 2)
        if beyond <= 0:
            return
        shift = min(beyond + BINS // 4, BINS)
        for table in (self.found, self.seen):
            table[:, : BINS - shift] = table[:, shift:]
            table[:, BINS - shift :] = 0.0
        self.origin += max(shift, beyond) if shift == BINS else shift
        self._sum(np.arange(self.evidence.size))

    def refit(self) -> None:
        """The share of families that have shocks, and their mean intensity, from all families."""
        families = self.evidence.size
        if families == 0:
            return
        doubt = DOUBT[0] * families + DOUBT[1]
        self.share = float((self.weight.sum() + doubt) / (families + 2.0 * doubt))
        found, seen = self.weight @ self.all_found, self.weight @ self.all_seen
        self.pool = float((found + SHRINK * FIRST_MEAN) / (seen + SHRINK))
        self._update(np.arange(families))

    def grow(self, family: Ints) -> None:
        """New items; families not met before begin."""
        more = max(int(family.max(initial=-1)) + 1 - self.evidence.size, 0)
        self.family = np.concatenate([self.family, family])
        for name in ("found", "seen", "sums"):
            table = getattr(self, name)
            setattr(self, name, np.concatenate([table, np.zeros((more, table.shape[1]))]))
        for name, fill in (("all_found", 0.0), ("all_seen", 0.0), ("evidence", 0.0)):
            setattr(self, name, np.concatenate([getattr(self, name), np.full(more, fill)]))
        self.mean = np.concatenate([self.mean, np.full(more, self.pool)])
        self.weight = np.concatenate([self.weight, np.full(more, self.share)])
        self._sum(np.arange(self.evidence.size - more, self.evidence.size))
        self._members()

    def _until(self, row: Ints, time: Float64s) -> Float64s:
        """∫h from the first bin to ``time``; before it the mean counts."""
        place = time / self.width - self.origin
        column = np.clip(np.floor(place), 0, BINS - 1).astype(np.int64)
        left = self.sums[row, column]
        inside = left + (self.sums[row, column + 1] - left) * (place - column)
        return np.where(place < 0, place * self.mean[row], inside)

    def _felt(self, touched: Ints, now: Float64s) -> Float64s:
        """What a member feels from the first bin until now, weighed by the model."""
        return self.weight[touched] * self._until(touched, np.full(touched.size, now.max(initial=0.0)))

    def _add(self, touched: Ints, place: Ints, since: Float64s, now: Float64s, events: Float64s) -> None:
        """Each poll adds its time to the bins it covers, and its events in proportion to their intensity."""
        shape = (touched.size, BINS)
        seen = _covered(shape, place, now / self.width - self.origin, np.ones(now.size))
        seen -= _covered(shape, place, since / self.width - self.origin, np.ones(now.size))
        drawn = _covered(shape, place, now / self.width - self.origin, events)
        drawn -= _covered(shape, place, since / self.width - self.origin, events)
        found = drawn * np.diff(self.sums[touched], axis=1)
        self.seen[touched] += np.maximum(seen, 0.0)
        self.found[touched] += np.maximum(found, 0.0)
        self.all_seen[touched] += seen.sum(axis=1)
        self.all_found[touched] += found.sum(axis=1)

    def _update(self, rows: Ints) -> None:
        learned = SHRINK * self.pool + self.all_found[rows]
        self.mean[rows] = learned / (SHRINK + self.all_seen[rows])
        odds = np.log(self.share / (1.0 - self.share)) + self.evidence[rows]
        self.weight[rows] = 1.0 / (1.0 + np.exp(-odds))
        self._sum(rows)

    def _sum(self, rows: Ints) -> None:
        felt = (self.mean[rows, None] + self.found[rows]) * np.log1p(1.0 / (1.0 + self.seen[rows]))
        self.sums[rows, 1:] = np.cumsum(felt, axis=1)

    def _members(self) -> None:
        self.order = np.argsort(self.family, kind="stable")
        self.first = np.searchsorted(self.family[self.order], np.arange(self.evidence.size + 1))

    def _of(self, families: Ints) -> Ints:
        """All members of these families."""
        parts = [self.order[self.first[one] : self.first[one + 1]] for one in families]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _covered(shape: tuple[int, int], row: Ints, place: Float64s, weight: Float64s) -> Float64s:
    """Σ weight × the part of each bin that lies before ``place``.

    >>> _covered((1, 4), np.array([0]), np.array([2.5]), np.array([1.0])).tolist()
    [[1.0, 1.0, 0.5, 0.0]]
    """
    rows, bins = shape
    inside = np.clip(place, 0.0, bins)
    column = np.minimum(inside.astype(np.int64), bins - 1)
    cell = row * bins + column
    whole = np.bincount(cell, weight, rows * bins).reshape(shape)
    part = np.bincount(cell, weight * (inside - column), rows * bins).reshape(shape)
    later = np.cumsum(whole[:, ::-1], axis=1)[:, ::-1] - whole
    return np.asarray(later + part)
