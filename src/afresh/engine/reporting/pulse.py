"""The engine's pulse: what it writes into the store, so that any process can watch it run.

A small value says that it lives and how far it got; the course of the last day is freshness with its
interval, age and counts, kept hour by hour, so that a new point changes a little only. Whoever reads them
needs no engine at hand; ``beat`` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import COURSE, PULSE
from afresh.stores.store import Store

BEAT_S = 2.0
_FINE_S, _COARSE_S, _KEPT_S = 900.0, 60.0, 86400.0
_HOUR_S, _HOURS = 3600.0, 25  # a day may begin and end within an hour
FIELDS = ("time_s", "freshness", "low", "high", "age_s", "polls", "changes", "failures", "requests")
Course = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last sign of life. ``stopped``: the run ended in order; ``trouble``: what delays it, in words.
    ``budget_per_s`` is the budget in requests that it keeps, ``delays`` the seconds between requests to a
    host, by source, whatever the settings of others say."""

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
    packed = store.state.get(PULSE)
    return Pulse(**json.loads(packed)) if packed else None


def as_running(store: Store, settings: Settings, now_s: float) -> Settings:
    """Return the settings with the budget and the delays of the engine that runs, if one does."""
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
    """Return the seconds between requests to a host, by source, where there are any."""
    named = ((table.settings.name, table.settings.delay_s) for table in settings.sources)
    return {name: float(delay_s) for name, delay_s in named if delay_s is not None}


def read_course(store: Store) -> Course:
    """Return the course of the last day, a row for each point, with the columns of ``FIELDS``."""
    hours = [_hour_name(hour * _HOUR_S) for hour in range(_HOURS)]
    course = np.concatenate([_points(store, name) for name in (COURSE, *hours)])
    course = course[np.argsort(course[:, 0], kind="stable")]
    return thin_out(course, float(course[-1, 0])) if course.size else course


def add_point(store: Store, point: Course) -> dict[str, bytes | None]:
    """Return the values to store so that the course has one more point: those of its hour. An hour replaces
    the one 25 hours ago. The course of an old store, in one value, is split once."""
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
    """Keep all points of the last quarter of an hour, one a minute before it, none older than a day.

    >>> course = np.zeros((3, len(FIELDS)))
    >>> course[:, 0] = [0.0, 10.0, 4000.0]
    >>> thin_out(course, 4000.0)[:, 0]
    array([   0., 4000.])
    """
    age_s = now_s - course[:, 0]
    minute = np.floor(course[:, 0] / _COARSE_S)
    first = np.r_[True, minute[1:] != minute[:-1]][: minute.size]
    return np.asarray(course[(age_s <= _KEPT_S) & (first | (age_s <= _FINE_S))], dtype=np.float64)
