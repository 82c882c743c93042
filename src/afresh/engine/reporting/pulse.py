"""The pulse of a running engine and its time course, which it writes to the store for other processes.

The pulse is a small record: when the engine was last active, and its counts. The time course of the last day
contains freshness with its confidence interval, age and counts. It is stored in one record per hour, so that
adding a point writes little. ``pulse_task`` writes both. From the pulse follows how much of its budget a run
used, and why the rest was not used: commands and pages say the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler.poll_costs import PollTallies
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import COURSE, PULSE, TALLIES, WORKER_PULSE, WORKER_TALLIES
from afresh.stores.store import Store

BEAT_S = 2.0
_FINE_S, _COARSE_S, _KEPT_S = 900.0, 60.0, 86400.0
_HOUR_S, _HOURS = 3600.0, 25  # a day that begins within an hour touches 25 hours
FIELDS = ("time_s", "freshness", "low", "high", "age_s", "polls", "changes", "failures", "requests")
Course = npt.NDArray[np.float64]


_REASONS = {
    "lent": "lent to other programs",
    "hosts": "hosts at their limit",
    "windows": "windows closed",
    "nothing": "no item worth a poll yet",
    "intervals": "no item may be polled again yet (min_interval)",
    "unchanged": "rows whose cursor has not moved",
    "targets": "kept free for target lags",
    "requests": "requests used up, also by looks (see look_every)",
    "limits": "other limits of the budget",
    "machine": "machine or answers too slow",
}
_REASONS_OF_SECONDS = {"nothing": "no stale view worth a refresh", "hosts": "waits for the database"}


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last report of a running engine. ``stopped`` is True if the run ended regularly; ``trouble`` states
    why the store cannot be used. ``budget_per_s`` is the engine's budget in requests per second, ``delays``
    the seconds between requests to a host, by source. Both may differ from the settings that others read.
    ``unspent`` has the requests of the budget that this run did not spend, by reason
    (``Run.count_unspent``). ``seconds`` are the seconds of requests or refreshes, and ``unspent_seconds``
    those that the budget allowed and that were not spent, by reason (empty if it does not limit them)."""

    time_s: float
    started_s: float
    polls: int = 0
    changes: int = 0
    failures: int = 0
    requests: int = 0
    audits: int = 0
    in_flight: int = 0
    trouble: str = ""
    stopped: bool = False
    budget_per_s: float | None = None
    delays: Mapping[str, float] = field(default_factory=dict)
    unspent: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    unspent_seconds: Mapping[str, float] = field(default_factory=dict)

    def pack(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def state(self, now_s: float) -> str:
        """Return ``running``, ``stopped``, or ``lost`` if the last pulse is too old.

        >>> Pulse(100.0, 0.0).state(103.0), Pulse(100.0, 0.0).state(200.0)
        ('running', 'lost')
        """
        if self.stopped:
            return "stopped"
        return "running" if abs(now_s - self.time_s) < 5 * BEAT_S else "lost"


def read_pulse(store: Store) -> Pulse | None:
    """Return the pulse of the whole fleet; see ``pulse_of_fleet``."""
    packed = store.state.get(PULSE)
    if not packed:
        return None
    return pulse_of_fleet(store, Pulse(**json.loads(packed)))


def pulse_of_fleet(store: Store, planner: Pulse) -> Pulse:
    """Return the pulse ``planner`` with the counts of the workers that ran since it started."""
    found = [store.state.get(name) for name in store.state.names() if name.startswith(WORKER_PULSE)]
    workers = [Pulse(**json.loads(each)) for each in found if each]
    return add_workers(planner, [each for each in workers if each.time_s >= planner.started_s])


def read_tallies(store: Store) -> PollTallies:
    """Return what all workers together counted by source, host and view."""
    found = PollTallies.unpack(store.state.get(TALLIES))
    for name in store.state.names():
        if name.startswith(WORKER_TALLIES):
            found.add(PollTallies.unpack(store.state.get(name)))
    return found


def add_workers(planner: Pulse, workers: Sequence[Pulse]) -> Pulse:
    """Return the pulse of ``planner`` with the counts of other workers. They share one budget, so what others
    spent is no longer unspent.

    >>> planner = Pulse(9.0, 0.0, polls=2, requests=3, unspent={"hosts": 4, "nothing": 4})
    >>> found = add_workers(planner, [Pulse(9.0, 0.0, polls=5, requests=4)])
    >>> found.polls, found.requests, found.unspent
    (7, 7, {'hosts': 2, 'nothing': 2})
    """
    if not workers:
        return planner
    names = ("polls", "changes", "failures", "requests", "audits", "in_flight")
    sums = {name: sum(getattr(each, name) for each in (planner, *workers)) for name in names}
    seconds = sum(each.seconds for each in workers)
    unspent = _less(planner.unspent, float(sums["requests"] - planner.requests))
    left_s = _less(planner.unspent_seconds, seconds)
    return replace(
        planner,
        **sums,
        seconds=planner.seconds + seconds,
        unspent={reason: round(count) for reason, count in unspent.items()},
        unspent_seconds=left_s,
    )


def _less(unspent: Mapping[str, float], spent: float) -> dict[str, float]:
    """Return ``unspent`` without what others ``spent``, in the same proportions."""
    total = sum(unspent.values())
    share = max(total - spent, 0.0) / total if total > 0 else 0.0
    return {reason: share * amount for reason, amount in unspent.items() if share * amount > 0}


def as_running(store: Store, settings: Settings, now_s: float) -> Settings:
    """Return the settings with the budget and the delays of the running engine, if one is running."""
    pulse = read_pulse(store)
    if pulse is None or pulse.budget_per_s is None or pulse.state(now_s) != "running":
        return settings
    own = {"requests": pulse.budget_per_s, "each_item": False}
    sources = []
    for table in settings.sources:
        delay_s = pulse.delays.get(table.settings.name)
        if delay_s is not None and hasattr(table.settings, "delay"):
            table = replace(table, settings=table.settings.model_copy(update={"delay": delay_s}))
        sources.append(table)
    return replace(settings, budget=settings.budget.model_copy(update=own), sources=tuple(sources))


def source_delays(settings: Settings) -> dict[str, float]:
    """Return the seconds between requests to a host by source, for sources that have such a delay."""
    named = ((table.settings.name, table.settings.delay_s) for table in settings.sources)
    return {name: float(delay_s) for name, delay_s in named if delay_s is not None}


def read_course(store: Store) -> Course:
    """Return the time course of the last day: one row per point, with the columns of ``FIELDS``."""
    hours = [_hour_name(hour * _HOUR_S) for hour in range(_HOURS)]
    course = np.concatenate([_points(store, name) for name in (COURSE, *hours)])
    course = course[np.argsort(course[:, 0], kind="stable")]
    return thin_out(course, float(course[-1, 0])) if course.size else course


def add_point(store: Store, point: Course) -> dict[str, bytes | None]:
    """Return the records to store in order to add ``point``: the points of its hour, which replace those of
    25 hours ago. If an old version of afresh stored the whole course in one record, it is split by hour."""
    now_s = float(point[0, 0])
    before, whole = _points(store, _hour_name(now_s)), _points(store, COURSE)
    known = whole if whole.size else before
    course = thin_out(np.concatenate((known[known[:, 0] < now_s], point)), now_s)
    hour = np.floor(course[:, 0] / _HOUR_S)
    values: dict[str, bytes | None] = {
        _hour_name(_HOUR_S * each): course[hour == each].tobytes() for each in np.unique(hour).tolist()
    }
    return values | ({COURSE: None} if whole.size else {})


def _points(store: Store, name: str) -> Course:
    flat = np.frombuffer(store.state.get(name) or b"", dtype=np.float64)
    return flat.reshape(-1, len(FIELDS))


def _hour_name(time_s: float) -> str:
    return f"{COURSE}:{int(time_s // _HOUR_S) % _HOURS}"


def thin_out(course: Course, now_s: float) -> Course:
    """Keep all points of the last 15 minutes, one point per minute before that, and none older than a day.

    >>> course = np.zeros((3, len(FIELDS)))
    >>> course[:, 0] = [0.0, 10.0, 4000.0]
    >>> thin_out(course, 4000.0)[:, 0]
    array([   0., 4000.])
    """
    age_s = now_s - course[:, 0]
    minute = np.floor(course[:, 0] / _COARSE_S)
    first = np.r_[True, minute[1:] != minute[:-1]][: minute.size]
    return np.asarray(course[(age_s <= _KEPT_S) & (first | (age_s <= _FINE_S))], dtype=np.float64)


def used_requests(run: Pulse) -> float:
    """Return the share of the requests of the budget that a run has used; NaN if it is too short to tell.
    The burst comes on top of the budget: a run that used some of it has used the whole budget, 1.

    >>> used_requests(Pulse(110.0, 10.0, requests=150, budget_per_s=2.0))
    0.75
    >>> used_requests(Pulse(15.0, 10.0, requests=6, budget_per_s=1.0))
    1.0
    """
    lasted_s = run.time_s - run.started_s
    if run.budget_per_s is None or lasted_s * run.budget_per_s <= 1:
        return math.nan
    used, _, allowed = _requests(run)
    return used / allowed


def used_seconds(run: Pulse, per_s: float) -> float:
    """Return the share of the seconds of requests and refreshes that a run has used, of ``per_s`` seconds in
    each second; NaN without such a limit."""
    allowed_s = per_s * (run.time_s - run.started_s)
    return run.seconds / allowed_s if math.isfinite(allowed_s) and allowed_s > 0 else math.nan


def describe_unused_requests(run: Pulse) -> str:
    """Describe why parts of the requests of the budget were not used, in words for people.

    >>> run = Pulse(110.0, 10.0, requests=150, budget_per_s=2.0, unspent={"hosts": 50})
    >>> describe_unused_requests(run), describe_use_of_requests(run, "this")
    ('25% hosts at their limit', '75% used by this run (not used: 25% hosts at their limit)')
    """
    return _unused(*_requests(run))


def describe_use_of_requests(run: Pulse, which: str) -> str:
    """Describe which share of the requests a run used, and why not the rest. ``which`` is "this" or
    "the last"."""
    return _describe_use(*_requests(run), which)


def describe_unused_seconds(run: Pulse, per_s: float) -> str:
    """Describe why parts of the seconds of the budget were not used; it allows ``per_s`` in each second."""
    return _unused(*_seconds(run, per_s))


def describe_use_of_seconds(run: Pulse, per_s: float, which: str) -> str:
    """Describe which share of the seconds a run used, and why not the rest."""
    return _describe_use(*_seconds(run, per_s), which)


def _requests(run: Pulse) -> tuple[float, dict[str, float], float]:
    """Return a tuple (used, not used by reason, allowed) of requests, without those of the burst."""
    unspent = {_REASONS.get(reason, reason): float(count) for reason, count in run.unspent.items()}
    allowed = (run.budget_per_s or 0.0) * (run.time_s - run.started_s)
    return min(run.requests, allowed), unspent, allowed


def _seconds(run: Pulse, per_s: float) -> tuple[float, dict[str, float], float]:
    """Return the same of seconds."""
    reasons = _REASONS | _REASONS_OF_SECONDS
    unspent = {reasons.get(reason, reason): seconds for reason, seconds in run.unspent_seconds.items()}
    return run.seconds, unspent, per_s * (run.time_s - run.started_s)


def _describe_use(used: float, unspent: Mapping[str, float], allowed: float, which: str) -> str:
    """Describe which share of what was ``allowed`` a run ``used``, and why the rest was not. The percentages
    add up to 100, unless more seconds were used than allowed: they are paid off later.

    >>> _describe_use(59.6, {"hosts at their limit": 20.2, "nothing due": 20.2}, 100.0, "this")
    '60% used by this run (not used: 20% hosts at their limit, 20% nothing due)'
    """
    unspent = _within(unspent, allowed - used)
    unused = _unused(used, unspent, allowed)
    share = (
        _whole_percentages([used, *unspent.values()], allowed)[0] if unused else round(100 * used / allowed)
    )
    return f"{share}% used by {which} run" + (f" (not used: {unused})" if unused else "")


def _unused(used: float, unspent: Mapping[str, float], allowed: float) -> str:
    """Return the parts of what was ``allowed`` that were not used, with their reasons."""
    if used >= allowed:
        return ""
    unspent = _within(unspent, allowed - used)
    shares = _whole_percentages([used, *unspent.values()], allowed)
    parts = [f"{share}% {words}" for words, share in zip(unspent, shares[1:], strict=True) if share]
    left = 100 - sum(shares)
    parts += [f"{left}% for other reasons"] if left > 0 else []
    return ", ".join(parts)


def _within(unspent: Mapping[str, float], left: float) -> dict[str, float]:
    """Return ``unspent`` in the same proportions, but no more than what was ``left``. The engines of a
    cluster count more together: each counts from its own part of the budget, and the parts change.

    >>> _within({"hosts": 6.0, "machine": 2.0}, 4.0), _within({"hosts": 6.0}, 9.0)
    ({'hosts': 3.0, 'machine': 1.0}, {'hosts': 6.0})
    """
    total = sum(unspent.values())
    share = max(left, 0.0) / total if total > max(left, 0.0) else 1.0
    return {reason: share * amount for reason, amount in unspent.items()}


def _whole_percentages(amounts: Sequence[float], total: float) -> list[int]:
    """Return the shares of ``amounts`` in ``total`` as whole percentages. If the amounts add up to the total,
    or nearly so, the percentages add up to 100: those that are cut most are rounded up.

    >>> _whole_percentages([1.0, 1.0, 1.0], 3.0), _whole_percentages([1.0, 1.0], 4.0)
    ([34, 33, 33], [25, 25])
    """
    exact = [100.0 * amount / total for amount in amounts]
    found = [math.floor(share) for share in exact]
    most_cut = sorted(range(len(exact)), key=lambda at: found[at] - exact[at])
    for at in most_cut[: round(sum(exact)) - sum(found)]:
        found[at] += 1
    return found
