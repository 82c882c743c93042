"""Policies on random orders of the items: figures by thirds of the window, kept in a file between runs.

The order of the items alone moves the freshness of uniform polling by more than a point in some histories, so
every figure is the mean over several orders, the same for all policies, with its standard error.
``AFRESH_ORDERS`` says how many (eight). ``AFRESH_RESULTS`` may name a file: every run is appended to it as
soon as it is done, and none is made twice while the code that it rests on stays the same. So a long
benchmark can be stopped, continued, and run in parts.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np

import afresh
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory
from afresh.replay.compare import captured
from afresh.replay.policy_run import ORACLE_BATCHES, batch_for, run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.replay.uniform_needs import UniformCurve
from afresh.replay.uniform_polling import UniformPolling
from afresh.values.arrays import Float64s, Ints
from bench.rows import Row

DAY = 86400.0
POLICIES = ("adaptive", "uniform", "oracle")
# Decisions while every item is polled once: a third of a replay's own, and a tenth of that in small sizes.
BATCHES, FEW_BATCHES = 100, 10
MOST_LOST, MOST_LOST_WITH_FEW_POLLS = (
    0.1,
    0.3,
)  # points of freshness below uniform, beside two standard errors
FEW_POLLS = 10.0  # of an item in the window
MOST_WORSE = 1.02  # for other objectives: the policy's figure over that of uniform
# The references do not depend on the rest of the code.
_REFERENCE_CODE = (
    "replay",
    "policy/policy.py",
    "policy/ranking_policy.py",
    "allocation/objectives.py",
    "model/curves.py",
)
_CODE = ("replay", "policy", "rates", "model", "allocation")


@dataclass(frozen=True, slots=True)
class Trial:
    """A history with names, and a budget; with ``hour`` None no season is looked for."""

    history: ChangeHistory
    names: list[str]
    polls_per_day: float
    objective: str = "freshness"
    hour: float | None = 3600.0
    batches_per_round: int = BATCHES

    @property
    def budget(self) -> float:
        return self.polls_per_day * self.history.items / DAY

    @property
    def polls_per_item(self) -> float:
        return self.polls_per_day * self.history.length / DAY

    def reordered(self, order: Ints) -> Trial:
        """The same with the items in another order: item ``order[j]`` becomes item j."""
        names = [self.names[item] for item in order]
        return replace(self, history=_reordered(self.history, order), names=names)

    def with_names_shuffled(self, rng: np.random.Generator) -> Trial:
        """The same with names dealt out anew, so that they say nothing."""
        return replace(self, names=[self.names[one] for one in rng.permutation(len(self.names))])


Maker = Callable[[int], Trial]
"""Makes the trial of each order, numbered from 0."""


def in_random_orders(trial: Trial, *, shuffled: bool = False) -> Maker:
    """A trial for each random order of the items; with ``shuffled`` names are dealt out anew in each."""

    def make(number: int) -> Trial:
        rng = np.random.default_rng(1000 + number)
        ordered = trial.reordered(rng.permutation(trial.history.items))
        return ordered.with_names_shuffled(rng) if shuffled else ordered

    return make


def orders(quick: bool) -> int:
    """How many random orders are run."""
    return 2 if quick else int(os.environ.get("AFRESH_ORDERS", "8"))


@dataclass(frozen=True, slots=True)
class Figures:
    """``thirds[policy]``: the objective's measure, a row per order and a column per third of the window."""

    thirds: dict[str, Float64s]
    trial: Trial

    def after(self, policy: str) -> Float64s:
        """The figure after a warm-up of a third, in each order."""
        return np.asarray(self.thirds[policy][:, 1:].mean(axis=1))

    @property
    def means(self) -> tuple[float, float, float]:
        """Adaptive, uniform and oracle after the warm-up, mean over the orders."""
        own, uniform, oracle = (float(self.after(policy).mean()) for policy in POLICIES)
        return own, uniform, oracle

    @property
    def points(self) -> float:
        """Points of freshness that adaptive is above uniform."""
        return 100.0 * (self.means[0] - self.means[1])

    @property
    def error(self) -> float:
        """The standard error of ``points``, from the differences in each order."""
        gains = 100.0 * (self.after("adaptive") - self.after("uniform"))
        return float(gains.std(ddof=1) / math.sqrt(gains.size)) if gains.size > 1 else math.inf

    @property
    def points_by_third(self) -> list[float]:
        gains = self.thirds["adaptive"] - self.thirds["uniform"]
        return [float(100.0 * gain) for gain in gains.mean(axis=0)]

    def most_lost(self) -> float:
        """The points below uniform that are forgiven: more where items get few polls or the oracle loses."""
        few = self.trial.polls_per_item < FEW_POLLS or self.means[2] < self.means[1]
        return (MOST_LOST_WITH_FEW_POLLS if few else MOST_LOST) + 2.0 * self.error

    def uniform_needs(self) -> float:
        """How many times the requests uniform polling needs for the same figure; NaN: no budget suffices."""
        history = self.trial.history
        start = replace(PolicyInput.of(history.items, self.trial.budget), objective=self.trial.objective)
        curve = UniformCurve(history, start, (history.start + history.length / 3,), seed=1)
        return curve.factor(self.means[0], 0)

    def row(self, name: str, *, judged: bool = True, with_needs: bool = False) -> Row:
        """The row of a benchmark: freshness of the three policies, and by how much adaptive is above."""
        own, uniform, oracle = self.means
        gained = captured([self.means])
        if self.trial.objective != "freshness":
            what = f"{name}: {own / DAY:.4g} d of {uniform / DAY:.4g} to {oracle / DAY:.4g}"
            most = MOST_WORSE if judged else None
            return Row(what, gained, "captured", ratio=own / uniform, at_most=most)
        thirds = " ".join(f"{points:+.2f}" for points in self.points_by_third)
        what = f"{name}: {own:.4f} of {uniform:.4f} to {oracle:.4f}, ± {self.error:.2f}, thirds {thirds}"
        what += f", uniform needs {self.uniform_needs():.2f} times the requests" if with_needs else ""
        # One order has no standard error, so nothing can be said about the limit.
        least = -round(self.most_lost(), 3) if judged and math.isfinite(self.error) else None
        return Row(what, gained, "captured", ratio=self.points, at_least=least)


@dataclass(slots=True)
class Results:
    """The figures of single runs by a key, in memory and in the file ``path``."""

    path: Path | None
    known: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def from_environment(cls) -> Results:
        """The results in the file ``AFRESH_RESULTS``; none where it is not set or new."""
        named = os.environ.get("AFRESH_RESULTS")
        results = cls(Path(named) if named else None)
        if results.path is not None and results.path.exists():
            for line in results.path.read_text().splitlines():
                entry = json.loads(line)
                results.known[entry["key"]] = entry["thirds"]
        return results

    def keep(self, key: str, what: str, thirds: list[float]) -> None:
        self.known[key] = thirds
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "what": what, "thirds": thirds}) + "\n")


def measure(name: str, make: Maker, count: int, results: Results) -> Figures:
    """Run the three policies on ``count`` trials, or take what is known of them."""
    trials = [make(number) for number in range(count)]
    thirds = {}
    for policy in POLICIES:
        found = [
            known_thirds(trial, policy, f"{name}, {policy}, order {number}", results)
            for number, trial in enumerate(trials)
        ]
        thirds[policy] = np.array(found)
    figures = Figures(thirds, trials[0])
    sys.stderr.write(f"{figures.row(name).name}\n")  # the table comes at the very end, after hours
    return figures


def known_thirds(trial: Trial, policy: str, what: str, results: Results) -> list[float]:
    """Take what is known of this run, or run it and keep its figures as those of ``what``."""
    key = _key(trial, policy)
    if key not in results.known:
        results.keep(key, what, run_by_thirds(trial, policy))
    return results.known[key]


def run_by_thirds(trial: Trial, policy: str) -> list[float]:
    """The mean of the objective's measure over the items in each third of the window."""
    history = trial.history
    if policy == "uniform":
        seen = UniformPolling(history).seen(trial.budget)
    else:
        start = replace(
            PolicyInput.of(history.items, trial.budget, now=history.start),
            families=families_of(trial.names),
            rates=history.rates(UNSEEN_CHANGES),
            objective=trial.objective,
            hour=trial.hour,
        )
        batch = batch_for(history.items, ORACLE_BATCHES if policy == "oracle" else trial.batches_per_round)
        visits = run_policy(history, make_policy(policy, start), trial.budget, batch=batch)
        seen = seen_at(history.change_item, history.time, visits.item, visits.time, history.end)
    edges = np.linspace(history.start, history.end, 4).tolist()
    each = (scores_when_seen(history, seen, *part)[trial.objective] for part in pairwise(edges))
    return [float(one.mean()) for one in each]


def pooled(name: str, cells: Sequence[Figures], at_least: float) -> Iterator[Row]:
    """What all cells capture together, and the points above uniform in each third of the window."""
    if cells:
        thirds = " ".join(f"{np.mean(each):+.2f}" for each in _columns(cells))
        what = f"captured, {name}; thirds {thirds}"
        yield Row(what, captured(cell.means for cell in cells), "", at_least=at_least)


def _reordered(history: ChangeHistory, order: Ints) -> ChangeHistory:
    count = np.diff(history.first)[order]
    first = np.concatenate([[0], np.cumsum(count)])
    old = np.repeat(history.first[order] - first[:-1], count) + np.arange(history.time.size)
    return replace(
        history,
        first=first,
        time=history.time[old],
        weight=history.weight[order],
        cost=history.cost[order],
        value=None if history.value is None else history.value[old],
        initial=None if history.initial is None else history.initial[order],
    )


def _columns(cells: Sequence[Figures]) -> Float64s:
    """The points above uniform, a row per third and a column per cell."""
    return np.array([cell.points_by_third for cell in cells]).T


def _key(trial: Trial, policy: str) -> str:
    """A hash of all that the figures of a run depend on."""
    history, digest = trial.history, blake2b(digest_size=12)
    for column in (history.first, history.time):
        digest.update(column.tobytes())
    settings = (history.start, history.end, trial.polls_per_day, trial.objective, policy)
    digest.update(repr(settings).encode())
    if policy in ("uniform", "oracle"):
        digest.update(_code_digest(_REFERENCE_CODE))
    else:
        digest.update(repr((trial.names, trial.hour, trial.batches_per_round)).encode())
        digest.update(_code_digest(_CODE))
    return digest.hexdigest()


def history_key(history: ChangeHistory, *settings: object) -> str:
    """A hash of all that figures depend on which were made from a history with these settings."""
    digest = blake2b(digest_size=12)
    for column in (history.first, history.time):
        digest.update(column.tobytes())
    digest.update(repr((history.start, history.end, *settings)).encode())
    digest.update(_code_digest(_CODE))
    return digest.hexdigest()


@cache
def _code_digest(parts: tuple[str, ...]) -> bytes:
    """A hash of these files and folders of the package."""
    root, digest = Path(afresh.__file__).parent, blake2b(digest_size=12)
    for part in parts:
        for path in sorted((root / part).rglob("*.py")) or [root / part]:
            digest.update(path.read_bytes())
    return digest.digest()
