"""Builds the adaptive policy again from what it knows: with a new grid of rates, families or budget.

With 200,000 items this takes seconds. So it works on what was read before, and may run in another thread
while the old policy is used; items that were polled meanwhile are then taken over from the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.saved_state import Arrays
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.values.arrays import Float64s, Ints
from afresh.values.stored import Ids

FAR = 4.0  # a grid of rates that is off by this factor is built again, and families with other bins are


@dataclass(frozen=True, slots=True)
class BuiltPolicy:
    """A new policy with its families, and when each item was last polled and how often, in the policy
    ``before``, at the time from which it was built."""

    adaptive: Adaptive
    families: Ids
    before: Adaptive
    last_poll_s: Float64s
    polls: Ints

    def changed_rows(self) -> Ids:
        """Return the items that the policy before has learned about, or forgotten, since then."""
        items, belief = self.before.items, self.before.belief
        return np.flatnonzero((items.last_poll != self.last_poll_s) | (belief.polls != self.polls))


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What the policy ``before`` knew: ``rows`` of all items, and what was ``learned`` of them together. Call
    ``build`` once."""

    start: PolicyInput
    families: Ids
    before: Adaptive
    rows: Arrays
    learned: Arrays
    last_poll_s: Float64s = field(init=False)
    polls: Ints = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_poll_s", self.before.items.last_poll.copy())
        object.__setattr__(self, "polls", self.before.belief.polls.copy())

    def build(self, names: Sequence[str] | None) -> BuiltPolicy:
        """Build the policy; if the ``names`` of all items are given, also the families."""
        size, families = self.last_poll_s.size, self.families
        if names is not None and len(names) == size:
            families = families_of(names)
        adaptive = Adaptive(replace(self.start, families=families if families.shape[1] else None))
        shared = adaptive.shared()
        kept = (
            ("notices.", "season.", "shocks.")
            if _have_similar_bins(self.learned, shared)
            else ("notices.", "season.")
        )
        learned = {name: value for name, value in self.learned.items() if name.startswith(kept)}
        shared |= learned | {"notices.frequency": shared["notices.frequency"]}
        adaptive.restore(shared, np.arange(size), self.rows)
        self.rows.clear()  # of very many items they take as much memory as the policy
        adaptive.refit(self.start.now)
        return BuiltPolicy(adaptive, families, self.before, self.last_poll_s, self.polls)


def _have_similar_bins(one: Arrays, other: Arrays) -> bool:
    """Return whether both have families, and count their changes over similar times."""
    widths = [each.get("shocks.width", np.array(np.nan)) for each in (one, other)]
    return bool(1.0 / FAR <= widths[0] / widths[1] <= FAR)
