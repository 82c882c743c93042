"""Find sharp changes of a table's rate of writes, such as the end of an idle night. Pure.

A tally counts readings for a week. After an idle phase it would hold the rate at too low a value for as long
as the phase lasted. A reading of t seconds finds writes with the probability p = 1 − e^{−λt}. For the last k
readings, k = 8, 16, 32 and 64, the likelihood with a rate λ of their own, and another one for the readings
before, is compared with that of one rate for all. If the logarithm of the ratio is above ``EVIDENCE``, the
tally forgets what was before these k readings. At a constant rate this happened three times in 80,000
simulated readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from afresh.sources.views.rates import WriteTally

Reading: TypeAlias = tuple[float, int]
"""The seconds since the reading before, and the database rows written in them."""

LAST_READINGS = 64
EVIDENCE = 10.0
_COMPARED = (8, 16, 32, LAST_READINGS)


def readings_since_change(tally_last: Sequence[Reading], tally: WriteTally) -> Sequence[Reading]:
    """Return the readings since a sharp change of the rate; nothing if the rate did not change. ``tally`` has
    all readings of one length, and ``tally_last`` the last of them.

    >>> tally, night_and_day = WriteTally(), [(5.0, 0)] * 1000 + [(5.0, 3)] * 4
    >>> for reading in night_and_day:
    ...     tally = tally.add(*reading)
    >>> len(readings_since_change(night_and_day[-64:], tally))
    8
    """
    for count in _COMPARED:
        if count > min(len(tally_last), tally.readings - count):
            break  # too few readings before these
        some = tally_last[-count:]
        later = _Part(count, sum(rows > 0 for _, rows in some), sum(seconds for seconds, _ in some))
        whole = _Part(tally.readings, tally.changed, tally.seconds)
        if _log_ratio(later, whole) > EVIDENCE:
            return some
    return ()


class _Part(NamedTuple):
    """Some readings: their number, how many found writes, and their seconds."""

    readings: float
    changed: float
    seconds: float

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of the readings with the rate that fits best, if they are equally long."""
        found, none = max(self.changed, 0.0), max(self.readings - self.changed, 0.0)
        return _times_log(found, found / self.readings) + _times_log(none, none / self.readings)


def _log_ratio(later: _Part, whole: _Part) -> float:
    """Return the log-likelihood ratio of two rates, before and in ``later``, against one for all."""
    before = _Part(*(all_of - part for all_of, part in zip(whole, later, strict=True)))
    return before.log_likelihood + later.log_likelihood - whole.log_likelihood


def _times_log(number: float, share: float) -> float:
    return number * math.log(share) if number > 0 else 0.0
