"""SAA, Zhang's self-adaptive estimation: it chooses the next poll as well as the estimate.

Start from a guess λ₀ and poll at f = λ₀. After every round of seven polls the estimate
r̂ = −ln((n−X+0.4)/(n+0.4)) says what to do:

    r̂ < 0.5         polls too often: f ← f/3, the seven polls become three, four more are added
    0.5 ≤ r̂ ≤ 0.9   done, with a = 0.7, which suits this range
    0.9 < r̂ ≤ 2     done, with a = 0.4
    r̂ > 2           polls too rarely: f ← 2f and seven new polls; if f may not grow, eight more once

λ̂ = r̂·f. After 7 doublings or 5 divisions it stops and says "at least" or "at most": an item that never
changes would otherwise be polled for ever. Zhang, Tang, Yang & Li 2007, §3, with the ranges made disjoint.

On simulated Poisson pages the mean of λ̂/λ is 1.02–1.11 for λ/f₀ from 0.01 to 0.5, 0.95 at 1, 0.75 from 3;
by the paper's own rules (``paper=True``) it is 1.06–1.13 below 0.5 and the same above.
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
MERGED = ((0, 1), (1, 4), (4, 7))  # which of the seven polls each of the three stands for


class Move(Enum):
    """What a finished round leads to."""

    STOP_LOW = "estimated, a = 0.7"
    STOP = "estimated"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    DOUBLE = "double the frequency"
    EXTEND = "eight more polls"
    DIVIDE = "a third of the frequency"


class RoundOrigin(Enum):
    """What led to the present round; only the paper's own rules depend on it."""

    START = "start"
    FASTER = "after a doubling or more polls"
    SLOWER = "after a division"


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round: what the rules need to know of it."""

    polls: int
    changes: int
    doublings: int
    divisions: int
    growable: bool
    origin: RoundOrigin
    paper: bool


def next_move(done: Round) -> Move:
    """The rule for a finished round: disjoint and capped, or to the paper's letter.

    The paper leaves a round after a doubling as soon as r̂ < 2 and one after a division as soon as r̂ > 0.5,
    both with a = 0.4 and without looking at the other ranges, and has no caps.

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
    # Eight more polls help once; the paper repeats them, and two runs in three never end at r = 3.
    if done.paper or (not done.growable and done.polls == ROUND):
        return Move.EXTEND
    return Move.AT_LEAST


def final_ratio(move: Move, polls: ArrayLike, changes: ArrayLike) -> Any:
    """r̂ of the last round under the a that its range asks for; half a change stands in for none.

    >>> round(final_ratio(Move.STOP_LOW, 7, 4), 3), round(final_ratio(Move.AT_MOST, 7, 0), 3)
    (0.733, 0.07)
    """
    seen = np.maximum(changes, 0.5 if move is Move.AT_MOST else 0.0)
    return ratio_estimate(polls, seen, 0.7 if move is Move.STOP_LOW else 0.4)


@dataclass(frozen=True, slots=True)
class SelfAdaptive:
    """One item's search for its rate: poll at ``next_poll()`` and call ``observe`` until ``done``.

    Frozen: ``observe`` returns the next state, so it can be stored and replayed. Times and ``frequency``
    are in any one unit of time. ``changed`` holds the bits of the present round, ``late`` by how much each
    poll came after its time; a late round is estimated with its true mean interval.

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
        """The state after the baseline visit at time ``at``; ``fastest`` is the highest frequency allowed."""
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
        """True mean interval of the round's polls: nominally 1/f, more if they came late."""
        return 1 / self.frequency + (sum(self.late) / len(self.late) if self.late else 0.0)

    @property
    def rate(self) -> float:
        """λ̂ from the present round, above 0 and finite; the guess before any poll of it."""
        if not self.changed:
            return self.frequency
        move = self.end or Move.AT_MOST
        return float(final_ratio(move, len(self.changed), sum(self.changed)) / self.interval)

    def bounds(self, level: float = 0.9) -> tuple[float, float]:
        """Clopper–Pearson bounds on the rate from the present round; (0, inf) before any poll of it."""
        if not self.changed:
            return 0.0, math.inf
        low, high = ratio_interval(len(self.changed), sum(self.changed), level)
        return low / self.interval, high / self.interval

    def next_poll(self) -> float | None:
        """When to poll next, or None when done."""
        return None if self.done else self.last_poll + 1 / self.frequency

    def observe(self, changed: bool, at: float | None = None) -> SelfAdaptive:
        """The state after a poll that found a change or not, at its time or at ``at``."""
        due = self.next_poll()
        if due is None:
            raise InputError("this search is done: start another one")
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
    """Polls 1, 4 and 7 stay, each with what was found since the one before it.

    The first of the three covers one old interval only; inside SAA it counts as three like the others.
    """
    kept = tuple(any(state.changed[lo:hi]) for lo, hi in MERGED)
    late = tuple(sum(state.late[lo:hi]) for lo, hi in MERGED)
    slower = replace(state, frequency=state.frequency / 3, changed=kept, late=late)
    target = len(kept) + ADDED_WHEN_SLOWER
    return replace(slower, target=target, divisions=state.divisions + 1, origin=RoundOrigin.SLOWER)
