"""SAA, the self-adaptive algorithm of Zhang, Tang, Yang & Li 2007, §3: it also chooses when to poll.

It starts from a guess λ₀ of the rate and polls with the frequency f = λ₀. After every round of n = 7 polls,
of which X found a change, the changes per polling interval r̂ = −ln((n−X+0.4)/(n+0.4)) decide the next step:

    r̂ < 0.5         polls are too frequent: f ← f/3, the seven polls are merged into three, four are added
    0.5 ≤ r̂ ≤ 0.9   done; r̂ is computed again with 0.7 instead of 0.4, which is better in this range
    0.9 < r̂ ≤ 2     done
    r̂ > 2           polls are too rare: f ← 2f and seven new polls; if f may not grow, eight more, once

The estimated rate is λ̂ = r̂·f. After 7 doublings or 5 divisions by 3, SAA stops and reports "at least" or "at
most", because an item that never changes would be polled for ever. In the paper the ranges of r̂ overlap.

On simulated Poisson pages the mean of λ̂/λ is 1.02–1.11 for λ/f₀ from 0.01 to 0.5, 0.95 at 1, and 0.75 from 3
on; f₀ is the first frequency. By the paper's rules (``paper=True``) it is 1.06–1.13 up to 0.5, else the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from afresh.rates.log_ratio import ratio_estimate, ratio_interval
from afresh.values.arrays import ArrayLike
from afresh.values.errors import InputError

ROUND = 7
ADDED_WHEN_SLOWER = 4
ADDED_WHEN_STUCK = 8
DOUBLINGS = 7
DIVISIONS = 5
MERGED = ((0, 1), (1, 4), (4, 7))  # for each of the three merged polls: first and end index of the old polls


class Move(Enum):
    """The step that SAA, the self-adaptive algorithm, takes after a round: stop, or go on polling."""

    STOP_LOW = "estimated, a = 0.7"
    STOP = "estimated"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    DOUBLE = "double the frequency"
    EXTEND = "eight more polls"
    DIVIDE = "a third of the frequency"


class RoundOrigin(Enum):
    """How the present round of polls began; only the paper's own rules depend on it."""

    START = "start"
    FASTER = "after a doubling or more polls"
    SLOWER = "after a division"


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round of polls, as the argument of ``next_move``.
    ``changes`` of the ``polls`` found a change. ``growable`` says whether the frequency may double."""

    polls: int
    changes: int
    doublings: int
    divisions: int
    growable: bool
    origin: RoundOrigin
    paper: bool


def next_move(done: Round) -> Move:
    """Return the step that follows a finished round, by our rules or (``paper``) by the paper's own.
    The paper stops after a doubling as soon as r̂ < 2, and after a division as soon as r̂ > 0.5. It does not
    check the other ranges, uses a = 0.4 in both cases, and does not limit the doublings and divisions.

    >>> finished = Round(7, 7, doublings=0, divisions=0, growable=True, origin=RoundOrigin.START, paper=False)
    >>> next_move(finished).value
    'double the frequency'
    """
    ratio = ratio_estimate(done.polls, done.changes, 0.4)
    if done.paper and done.origin is RoundOrigin.FASTER:
        return Move.STOP if ratio < 2 else _faster(done)
    if done.paper and done.origin is RoundOrigin.SLOWER:
        return Move.STOP if ratio > 0.5 else Move.DIVIDE
    if ratio > 2:
        return _faster(done)
    if ratio < 0.5:
        return Move.DIVIDE if done.paper or done.divisions < DIVISIONS else Move.AT_MOST
    return Move.STOP_LOW if ratio <= 0.9 else Move.STOP


def _faster(done: Round) -> Move:
    if done.growable and (done.paper or done.doublings < DOUBLINGS):
        return Move.DOUBLE
    # Eight more polls help once. The paper repeats them, and then two runs in three never end at r = 3.
    if done.paper or (not done.growable and done.polls == ROUND):
        return Move.EXTEND
    return Move.AT_LEAST


def final_ratio(move: Move, polls: ArrayLike, changes: ArrayLike) -> Any:
    """Return r̂ = −ln((n−X+a)/(n+a)) of the last round, with X ``changes`` in n ``polls``.
    a is 0.7 if ``move`` is ``STOP_LOW``, else 0.4. If it is ``AT_MOST``, no change counts as half a change.

    >>> round(final_ratio(Move.STOP_LOW, 7, 4), 3), round(final_ratio(Move.AT_MOST, 7, 0), 3)
    (0.733, 0.07)
    """
    seen = np.maximum(changes, 0.5 if move is Move.AT_MOST else 0.0)
    return ratio_estimate(polls, seen, 0.7 if move is Move.STOP_LOW else 0.4)


@dataclass(frozen=True, slots=True)
class SelfAdaptive:
    """The state of SAA for one item: poll at ``next_poll()`` and call ``observe`` until it is ``done``.
    The state is frozen: ``observe`` returns the next state, so that states can be stored and replayed. Times
    and ``frequency`` use the same unit of time. ``changed`` contains the result of each poll of the present
    round, ``late`` its delay. A round with delays is estimated with its true mean polling interval.

    >>> saa = SelfAdaptive.start(guess=1.0)
    >>> for bit in (1, 0, 1, 1, 0, 1, 1):
    ...     saa = saa.observe(changed=bool(bit))
    >>> saa.done, saa.verdict, round(saa.rate, 3), saa.polls
    (True, 'estimated', 1.126, 8)
    """

    frequency: float
    last_poll: float
    fastest: float = math.inf
    paper: bool = False
    changed: tuple[bool, ...] = ()
    late: tuple[float, ...] = ()
    target: int = ROUND
    doublings: int = 0
    divisions: int = 0
    origin: RoundOrigin = RoundOrigin.START
    polls: int = 1
    end: Move | None = None

    @classmethod
    def start(
        cls, guess: float, *, at: float = 0.0, fastest: float = math.inf, paper: bool = False
    ) -> SelfAdaptive:
        """Return the state after a first poll at time ``at``. ``guess`` is the guess λ₀ of the rate,
        ``fastest`` the highest allowed frequency; ``paper`` chooses the paper's own rules."""
        if not (0 < guess < math.inf and fastest > 0 and math.isfinite(at)):
            raise InputError(
                f"guess {guess}, fastest {fastest}, at {at}: give rates above 0 and a finite time"
            )
        return cls(frequency=min(guess, fastest), last_poll=at, fastest=fastest, paper=paper)

    @property
    def done(self) -> bool:
        return self.end is not None

    @property
    def verdict(self) -> str:
        """``polling`` until done, then ``estimated``, ``at least`` or ``at most``."""
        if self.end is None:
            return "polling"
        return "estimated" if self.end in (Move.STOP, Move.STOP_LOW) else self.end.value

    @property
    def interval(self) -> float:
        """The true mean polling interval of this round: 1/f, plus the mean delay of its polls."""
        return 1 / self.frequency + (sum(self.late) / len(self.late) if self.late else 0.0)

    @property
    def rate(self) -> float:
        """The rate estimated from this round, above 0 and finite; the frequency if it has no poll yet."""
        if not self.changed:
            return self.frequency
        move = self.end or Move.AT_MOST
        return float(final_ratio(move, len(self.changed), sum(self.changed)) / self.interval)

    def bounds(self, level: float = 0.9) -> tuple[float, float]:
        """Return a tuple (low, high) of Clopper–Pearson bounds on the rate, at confidence ``level``; (0, inf)
        if the present round has no poll yet."""
        if not self.changed:
            return 0.0, math.inf
        low, high = ratio_interval(len(self.changed), sum(self.changed), level)
        return low / self.interval, high / self.interval

    def next_poll(self) -> float | None:
        """Return the time of the next poll, or None when done."""
        return None if self.done else self.last_poll + 1 / self.frequency

    def observe(self, changed: bool, at: float | None = None) -> SelfAdaptive:
        """Return the state after a poll at ``at`` (default: ``next_poll()``) that found a change or none."""
        due = self.next_poll()
        if due is None:
            raise InputError("this estimation is done: start another one")
        now = due if at is None else at
        if not self.last_poll < now < math.inf:
            raise InputError(f"a poll at {now} must come after the one at {self.last_poll}")
        bits, late = (*self.changed, bool(changed)), (*self.late, now - due)
        after = replace(self, last_poll=now, changed=bits, late=late, polls=self.polls + 1)
        return after if len(after.changed) < after.target else _after_round(after)


def _after_round(state: SelfAdaptive) -> SelfAdaptive:
    polls, changes = len(state.changed), sum(state.changed)
    growable = 2 * state.frequency <= state.fastest
    done = Round(polls, changes, state.doublings, state.divisions, growable, state.origin, state.paper)
    move = next_move(done)
    if move is Move.DOUBLE:
        faster = replace(state, frequency=2 * state.frequency, changed=(), late=(), target=ROUND)
        return replace(faster, doublings=state.doublings + 1, origin=RoundOrigin.FASTER)
    if move is Move.DIVIDE:
        return _divide_frequency(state)
    if move is Move.EXTEND:
        return replace(state, target=state.target + ADDED_WHEN_STUCK, origin=RoundOrigin.FASTER)
    return replace(state, end=move)


def _divide_frequency(state: SelfAdaptive) -> SelfAdaptive:
    """Divide the frequency by 3: polls 1, 4 and 7 remain. A remaining poll counts as changed if it or one of
    the polls merged into it found a change. Poll 1 covers only one old polling interval, but SAA counts it as
    three, like the others."""
    kept = tuple(any(state.changed[lo:hi]) for lo, hi in MERGED)
    late = tuple(sum(state.late[lo:hi]) for lo, hi in MERGED)
    slower = replace(state, frequency=state.frequency / 3, changed=kept, late=late)
    target = len(kept) + ADDED_WHEN_SLOWER
    return replace(slower, target=target, divisions=state.divisions + 1, origin=RoundOrigin.SLOWER)
