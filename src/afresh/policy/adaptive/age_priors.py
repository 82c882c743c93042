"""The priors of items whose age at the first look is known, and how all priors are learned.

A source may state when an item changed last (Last-Modified). At the first look there is no bit yet, but the
age A, the time since that change, already tells about the rate. How much differs between sources: A may be
the time since the item was created, or since an edit of a thousand pages at once, and changes come in bursts.
So an age is not evidence about its item alone: it puts the item into a class, and polls teach how the items
of the class change. A class holds the ages that are about 1/λ for one rate λ of the grid.

Each class has its own prior, learned by EM from the polls of its items. As long as these are few, it stays
near what a constant rate lets expect, which counts as much as ``AGE_ITEMS`` items of the class: the prior of
all items times (λ·e^{−λA})^``AGE_WEIGHT``. If ages say nothing, the priors of all classes become alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afresh.policy.adaptive.row_products import row_products
from afresh.values.arrays import Float64s, Ints

STEPS = 50  # of EM. With 10 the prior stays too broad after few polls, and polls are moved without a gain.
FLAT = 1e-3  # share of the even distribution in a learned prior
AGE_WEIGHT, AGE_ITEMS = 0.25, 20.0
UNKNOWN = -128  # of an octave

Octaves = npt.NDArray[np.int8]


def fit_prior(sample: Float64s, prior: Float64s) -> Float64s:
    """Return the prior under which the polls are most likely. ``sample`` are beliefs, with a row per item,
    that were computed with the ``prior`` of before.

    >>> sure = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> fit_prior(sure, np.array([0.5, 0.5])).round(2)
    array([0.71, 0.29])
    """
    fitted = prior
    for _ in range(STEPS):
        fitted = with_even_share(_em_step(sample, fitted / prior))
    return fitted


def with_even_share(learned: Float64s) -> Float64s:
    """Return a prior that excludes no rate: with the share ``FLAT`` of an even distribution."""
    return np.asarray((learned + FLAT / learned.shape[-1]) / (1.0 + FLAT))


def _em_step(sample: Float64s, tilt: Float64s) -> Float64s:
    """Return the mean of the beliefs ``sample`` if their prior is multiplied by ``tilt``."""
    return np.asarray(tilt * ((1.0 / row_products(sample, tilt)) @ sample) / len(sample))


class AgePriors:
    """The classes of ages of the items, and their priors.
    ``octave`` is log₂ of the age of each item, rounded, which depends on no grid; ``UNKNOWN`` if its source
    stated none. ``table`` has a row for items of unknown age, then one for each class; None before any age.

    >>> ages, rates = AgePriors(3), 0.01 * np.exp2(np.arange(8))
    >>> ages.set_ages(np.array([0, 1]), np.array([1.0, 80.0]))
    >>> ages.table = ages.expected_from(np.full(8, 1 / 8), rates)
    >>> (ages.table[ages.table_rows(np.arange(3), rates)] @ rates).round(2)
    array([0.43, 0.05, 0.32])
    """

    def __init__(self, items: int) -> None:
        self.octave: Octaves = np.full(items, UNKNOWN, dtype=np.int8)
        self.table: Float64s | None = None

    @property
    def any_known(self) -> bool:
        return bool((self.octave != UNKNOWN).any())

    def set_ages(self, items: Ints, age: Float64s) -> None:
        octave = np.round(np.log2(np.maximum(age, 1e-300)))
        self.octave[items] = np.clip(octave, UNKNOWN + 1, -UNKNOWN - 1)

    def forget(self, items: Ints) -> None:
        self.octave[items] = UNKNOWN

    def grow(self, items: int) -> None:
        """Add new items of unknown age."""
        self.octave = np.concatenate([self.octave, np.full(items, UNKNOWN, dtype=np.int8)])

    def table_rows(self, items: Ints, rates: Float64s) -> Ints:
        """Return the row of each item in ``table``, for this grid of rates."""
        octaves = np.arange(UNKNOWN, -UNKNOWN)
        nearest = -octaves - round(float(np.log2(rates[0])))
        row_of = 1 + np.clip(nearest, 0, rates.size - 1)
        row_of[octaves == UNKNOWN] = 0
        return np.asarray(row_of[self.octave[items].astype(np.int64) - UNKNOWN])

    def expected_from(self, prior: Float64s, rates: Float64s) -> Float64s:
        """Return the table that a constant rate of each item lets expect, if ``prior`` is that of all items.
        Its first row is ``prior``."""
        evidence = AGE_WEIGHT * (np.log(rates) - rates / rates[:, None])
        tilted = prior * np.exp(evidence - evidence.max(axis=1, keepdims=True))
        tilted /= tilted.sum(axis=1, keepdims=True)
        return np.concatenate([prior[None], with_even_share(tilted)])

    def fit(
        self, rows: Ints, sample: Float64s, prior: Float64s, rates: Float64s
    ) -> tuple[Float64s, Float64s]:
        """Return a tuple (prior of all items, table), fitted to the beliefs ``sample`` of polled items, whose
        rows in the table are ``rows``. ``prior`` is that of all items before."""
        before = np.tile(prior, (rates.size + 1, 1)) if self.table is None else self.table
        beliefs = {row: sample[rows == row] for row in np.unique(rows).tolist()}
        table = before.copy()
        for _ in range(STEPS):
            expected = self.expected_from(prior, rates)
            total = np.zeros(rates.size)
            for row, some in beliefs.items():
                learned = len(some) * _em_step(some, table[row] / before[row])
                table[row] = with_even_share((learned + AGE_ITEMS * expected[row]) / (len(some) + AGE_ITEMS))
                total += learned
            prior = with_even_share(total / rows.size)
        unseen = np.setdiff1d(np.arange(len(table)), rows)
        table[unseen] = self.expected_from(prior, rates)[unseen]
        return prior, table
