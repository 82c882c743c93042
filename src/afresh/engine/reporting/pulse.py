"""The pulse of a running engine and its time course, which it writes to the store for other processes.

The pulse is a small record: when the engine was last active, and its counts. The time course of the last day
contains freshness with its confidence interval, age and counts. It is stored in one record per hour, so that
adding a point writes little. ``pulse_task`` writes both.
"""

from __future__ import annotations

import json
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
