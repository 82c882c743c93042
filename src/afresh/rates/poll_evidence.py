"""What each poll says about a rate: so many changes in a known time, or only that something changed.

Three kinds of evidence, from the weakest to the strongest:

- One bit. An unchanged poll says that there was no change in the interval t, a changed one only that there
  was at least one.
- The source's own modification time. A poll that finds the last change x = min(time since modification, t)
  ago says: one change, then none for x. This is exact, and worth several polls where rates are high.
  Wrong stamps were taken out before (see ``poll_table``).
- A count. A version number, a counter, a log or a feed says how many changes there were, several in one
  interval too.

Where a poll has no stamp or no count, it falls back to one bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class PollEvidence:
    """What each poll says: ``events`` in a time ``exposure``, or (``bit``) only that something changed."""

    events: Float64s
    exposure: Float64s
    bit: Bools


def bit_evidence(polls: PollTable) -> PollEvidence:
    """One bit per poll: no event in the interval, or at least one."""
    return PollEvidence(np.zeros(polls.size), np.where(polls.changed, 0.0, polls.elapsed), polls.changed)


def stamp_evidence(polls: PollTable) -> PollEvidence:
    """One event and the time since, where the stamp is credible; else one bit."""
    if polls.since is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.since)
    stamped = polls.changed & known
    exposure = np.where(polls.changed, 0.0, polls.elapsed)
    exposure[stamped] = polls.since[stamped]
    return PollEvidence(stamped.astype(np.float64), exposure, polls.changed & ~known)


def count_evidence(polls: PollTable) -> PollEvidence:
    """The counted events in the interval, where there is a count; else one bit."""
    if polls.count is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.count)
    bit = polls.changed & ~known
    return PollEvidence(np.where(known, polls.count, 0.0), np.where(bit, 0.0, polls.elapsed), bit)


def best_evidence(polls: PollTable) -> PollEvidence:
    """The strongest that each poll offers: a count, else a credible stamp, else the bit.

    Events and exposure are multiplied by the polls' weights; bits are not: that is left to the caller.
    """
    found = stamp_evidence(polls)
    if polls.count is not None:
        counted, known = count_evidence(polls), ~np.isnan(polls.count)
        found = PollEvidence(
            np.where(known, counted.events, found.events),
            np.where(known, counted.exposure, found.exposure),
            np.where(known, counted.bit, found.bit),
        )
    if polls.weight is None:
        return found
    return PollEvidence(found.events * polls.weight, found.exposure * polls.weight, found.bit)
