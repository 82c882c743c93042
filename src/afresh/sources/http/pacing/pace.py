"""Learn how many requests per second a host allows. All functions are pure; the time is an argument.

A host that answers 429, or 503 with Retry-After, refuses the pace of the requests. The rule is additive
increase and multiplicative decrease (Chiu and Jain 1989), with p requests per second allowed, and r the
pace that the host refused last:

    refused    p ← 0.85 r, at least p/2; p/2 if the host refuses again before it has given 10 good answers
    answered   p ← p + min(0.0025, 0.0015 r) for each good answer that the pace had to wait for

So p is between 0.85 r and r most of the time, and needs about a minute, or a hundred answers, from one to the
other. A host that refused nothing up to 2 r has no learned pace any more.

>>> pace = fall(None, 6.0)
>>> pace.per_s, round(rise(pace).per_s, 4), fall(pace, 6.0).per_s
(5.1, 5.1025, 2.55)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_FALL, _DEEP_FALL = 0.85, 0.5
_FEW_ANSWERS = 10  # fewer good answers than these between two refusals show that the pace is much too high
_FASTEST_RISE_PER_S = 0.0025
_RISE = 0.0015
_FORGET = 2.0
_WINDOW_S = 1.0
_LONGEST_SPACING_S = 60.0
_NEAR = 1.5  # requests at most this many times rarer than the pace allows were delayed by it


@dataclass(frozen=True, slots=True)
class Pace:
    """The learned pace of a host: at most ``per_s`` requests per second start. ``refused_per_s`` is the pace
    that the host refused last, ``answers`` the number of good answers since then."""

    per_s: float
    refused_per_s: float
    answers: int = 0


@dataclass(frozen=True, slots=True)
class AnswerCount:
    """Good answers of a host in the second that began at ``began_s``, and in the second before it.

    >>> counted = AnswerCount().add(100.0).add(100.4).add(101.2)
    >>> counted.per_s(101.3), counted.per_s(200.0)
    (2.0, 0.0)
    """

    began_s: float = -math.inf
    now: int = 0
    before: int = 0

    def add(self, now_s: float) -> AnswerCount:
        passed_s = now_s - self.began_s
        if passed_s < _WINDOW_S:
            return AnswerCount(self.began_s, self.now + 1, self.before)
        return AnswerCount(now_s, 1, self.now if passed_s < 2 * _WINDOW_S else 0)

    def per_s(self, now_s: float) -> float:
        """Return how many good answers the host gave within one second, just before ``now_s``. Many servers
        count within a second: the number that such a server answered is then its limit."""
        passed_s = now_s - self.began_s
        if passed_s < _WINDOW_S:
            return max(self.now, self.before) / _WINDOW_S
        return self.now / _WINDOW_S if passed_s < 2 * _WINDOW_S else 0.0


NO_ANSWERS = AnswerCount()


def refused_pace(pace: Pace | None, answered: AnswerCount, spacing_s: float, now_s: float) -> float | None:
    """Return the pace in requests per second that a host has just refused; None if requests were so rare that
    their pace cannot be the reason. ``spacing_s`` is the time between the last two starts.

    >>> busy = AnswerCount(100.0, now=6)
    >>> refused_pace(None, busy, 0.125, 100.75), refused_pace(None, AnswerCount(), 5.0, 100.0)
    (6.0, 0.2)
    >>> refused_pace(None, AnswerCount(), 3600.0, 100.0) is None
    True
    """
    highest = math.inf if pace is None else pace.per_s
    if spacing_s > max(_LONGEST_SPACING_S, _NEAR / highest):
        return None
    # Two or more answers in a second are counted; slower requests are measured by their distance.
    counted = answered.per_s(now_s)
    measured = counted if counted * _WINDOW_S > 1 else 1.0 / max(spacing_s, _WINDOW_S)
    return min(highest, measured)


def fall(pace: Pace | None, refused_per_s: float) -> Pace:
    """Return the pace after the host has refused ``refused_per_s`` requests per second."""
    if pace is None:
        return Pace(_FALL * refused_per_s, refused_per_s)
    if pace.answers < _FEW_ANSWERS:
        return Pace(_DEEP_FALL * pace.per_s, refused_per_s)
    return Pace(max(_FALL * refused_per_s, _DEEP_FALL * pace.per_s), refused_per_s)


def rise(pace: Pace) -> Pace:
    """Return the pace after a good answer."""
    step_per_s = min(_FASTEST_RISE_PER_S, _RISE * pace.refused_per_s)
    return replace(pace, per_s=pace.per_s + step_per_s, answers=pace.answers + 1)


def after_answer(pace: Pace | None, spacing_s: float) -> Pace | None:
    """Return the pace after a good answer to a request that started ``spacing_s`` after the one before it. If
    requests are rarer than the pace allows, the answer does not show that the host takes more of them.

    >>> slow = Pace(5.0, 6.0)
    >>> after_answer(slow, 10.0) == slow, after_answer(Pace(12.0, 6.0), 0.1) is None
    (True, True)
    """
    if pace is None or spacing_s * pace.per_s > _NEAR:
        return pace
    risen = rise(pace)
    return None if risen.per_s > _FORGET * pace.refused_per_s else risen


def spacing_s(pace: Pace | None) -> float:
    """Return the seconds from one start to the next that the pace demands; 0 without a learned pace."""
    return 0.0 if pace is None else 1.0 / pace.per_s
