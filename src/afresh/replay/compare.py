"""Compares policies on one history under one budget, by the share of the possible gain that each captures.

The reference is the oracle, which knows each item's mean rate over the whole history. For an item that never
changes, ``UNSEEN_CHANGES`` changes are assumed. With F the freshness of a policy,
captured = (F − F_uniform)/(F_oracle − F_uniform); for several runs it is the ratio of the sums. More than
100 % is possible, because the oracle does not know seasons, drift and shocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory, until
from afresh.replay.policy_run import (
    BATCHES_PER_ROUND,
    ORACLE_BATCHES,
    NoticeLog,
    Visits,
    batch_for,
    run_policy,
)
from afresh.replay.scores import Scores, score_visits
from afresh.values.arrays import Float64s
from afresh.values.errors import UsageError

REFERENCES = ("uniform", "oracle")
FIRST_ROUNDS = 3.0  # rounds of all items that are scored apart if stamps are given


@dataclass(frozen=True, slots=True)
class PeriodScores:
    """The scores of a policy over a period of time, and two comparisons with uniform polling.
    The comparisons use the measure of the objective. ``captured`` is the share of the oracle's gain.
    ``uniform_needs`` is the factor by which the budget must be multiplied so that uniform polling reaches the
    same score (see ``uniform_needs.add_uniform_needs``), or NaN if it is not known."""

    scores: Scores
    captured: float
    uniform_needs: float = math.nan


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The run of one policy under one budget: its polls (``visits``) and its scores.
    ``whole`` are the scores over the whole history, ``after`` those after the warm-up, and ``first`` those of
    the first ``FIRST_ROUNDS`` rounds of all items, if stamps were given."""

    policy: str
    budget: float
    visits: Visits
    whole: PeriodScores
    after: PeriodScores
    first: PeriodScores | None = None


def replay(
    history: ChangeHistory,
    policies: Sequence[str],
    start: PolicyInput,
    *,
    warm_up: float = 1 / 3,
    notices: NoticeLog | None = None,
    stamps: Float64s | None = None,
    seed: int = 1,
    batch: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[ReplayResult]:
    """Run these policies, uniform polling and the oracle from ``start``; return a result for each policy.
    The rates of ``start`` are replaced by those of the history. ``warm_up`` is a share of the history.
    ``stamps`` are as for ``run_policy``. ``batch`` is the number of items that a policy chooses at a time
    (None: ``batch_for``). ``progress`` is called with the share of all runs that is done.

    >>> rng = np.random.default_rng(1)
    >>> item, time = rng.integers(0, 20, 120) // 4, rng.uniform(0.0, 300.0, 120)
    >>> history = ChangeHistory.of(20, item, time, 0.0, 300.0)
    >>> adaptive, uniform = replay(history, ["adaptive", "uniform"], PolicyInput.of(20, 2.0))
    >>> uniform.after.captured, bool(adaptive.after.captured > 0.3)
    (0.0, True)
    """
    if not 0 <= warm_up < 1:
        raise UsageError(f"warm-up is {warm_up:g}: must be a share of the window, from 0 to below 1")
    known = replace(start, rates=history.rates(UNSEEN_CHANGES))
    periods = [(history, history.start), (history, history.start + warm_up * history.length)]
    periods += [] if stamps is None else [(_first_rounds(history, start), history.start)]
    names = tuple(dict.fromkeys((*policies, *REFERENCES)))
    visits: dict[str, Visits] = {}
    found: dict[str, list[Scores]] = {}
    for done, name in enumerate(names):
        per_round = ORACLE_BATCHES if name == "oracle" else BATCHES_PER_ROUND
        run = run_policy(
            history,
            make_policy(name, known),
            start.budget,
            open_time=start.open_time,
            notices=notices,
            stamps=stamps,
            batch=batch or batch_for(history.items, per_round),
            progress=None if progress is None else partial(_tell, progress, done, len(names)),
        )
        visits[name] = run
        # The same seed for all: they resample the same items, so their confidence intervals are comparable.
        found[name] = [
            score_visits(part, *run.until(part.end), begin, np.random.default_rng(seed))
            for part, begin in periods
        ]

    def period(name: str, at: int) -> PeriodScores:
        own, uniform, oracle = (getattr(found[one][at], start.objective) for one in (name, *REFERENCES))
        return PeriodScores(found[name][at], captured([(own, uniform, oracle)]))

    return [
        ReplayResult(one, start.budget, visits[one], *(period(one, at) for at in range(len(periods))))
        for one in dict.fromkeys(policies)
    ]


def _first_rounds(history: ChangeHistory, start: PolicyInput) -> ChangeHistory:
    """Return the beginning of a history, in which a policy makes ``FIRST_ROUNDS`` rounds of all items."""
    return until(history, min(history.start + FIRST_ROUNDS / start.mean_frequency, history.end))


def _tell(progress: Callable[[float], None], done: int, runs: int, share: float) -> None:
    progress((done + share) / runs)


def captured(cells: Iterable[tuple[float, float, float]]) -> float:
    """Return the share of the oracle's gain over uniform polling that a policy reaches, over several runs.
    It is Σ(own − uniform)/Σ(oracle − uniform) over the tuples of scores (own, uniform, oracle) in ``cells``,
    or NaN if the denominator is 0.

    >>> captured([(0.8, 0.7, 0.9), (0.6, 0.6, 0.6)])
    0.5
    """
    gained = to_gain = 0.0
    for own, uniform, oracle in cells:
        gained += own - uniform
        to_gain += oracle - uniform
    return round(gained / to_gain, 12) + 0.0 if to_gain else math.nan  # −0 is 0
