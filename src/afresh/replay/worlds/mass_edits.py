"""Mass edits of a synthetic world: one hand changes many items of a group at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class MassEdits:
    """Each group is edited at ``rate_per_s`` (Poisson); an edit changes each member with chance ``share``."""

    rate_per_s: float
    share: float

    def __post_init__(self) -> None:
        """Refuse what is no rate and no share."""
        if not (self.rate_per_s >= 0 and np.isfinite(self.rate_per_s)):
            raise UsageError(f"mass edits: rate is {self.rate_per_s:g} per second: must be 0 or more")
        if not 0 < self.share <= 1:
            raise UsageError(f"mass edits: share is {self.share:g}: must be above 0 and at most 1")

    def changes(
        self, group: Ints, start: float, end: float, rng: np.random.Generator
    ) -> tuple[Ints, Float64s]:
        """Item and time of every change made by mass edits, item ``i`` being in group ``group[i]``.

        >>> edits = MassEdits(rate_per_s=1.0, share=1.0)
        >>> item, time = edits.changes(np.array([0, 0, 1]), 0.0, 50.0, np.random.default_rng(1))
        >>> np.array_equal(time[item == 0], time[item == 1])        # one group, the same moments
        True
        """
        sizes = np.bincount(group, minlength=1)
        edited = np.repeat(np.arange(sizes.size), rng.poisson(self.rate_per_s * (end - start), sizes.size))
        when = rng.uniform(start, end, edited.size)
        members = np.argsort(group, kind="stable")
        first = np.cumsum(sizes) - sizes
        edit = np.repeat(np.arange(edited.size), sizes[edited])
        rank = np.arange(edit.size) - np.repeat(np.cumsum(sizes[edited]) - sizes[edited], sizes[edited])
        item = members[first[edited[edit]] + rank]
        hit = rng.random(edit.size) < self.share
        return item[hit], when[edit[hit]]
