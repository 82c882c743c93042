"""What the source knows about its views and tables between readings. It is saved for restarts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from afresh.sources.capabilities import StalenessReport
from afresh.sources.views.catalogue import (
    Catalogue,
    Stamp,
    State,
    is_known,
    is_stale,
    rows_written,
    state_after,
)
from afresh.sources.views.rate_changes import LAST_READINGS, Reading, readings_since_change
from afresh.sources.views.rates import WriteTally, most_informative, overall_dispersion, view_rates
from afresh.values.results import RateEstimate

WINDOW_S = 5.0
"""The shortest counting period for writes, in seconds. Sessions report their writes at most once a second."""

_EARLY_S = 0.5  # a reading that comes so many seconds too early still ends the counting period
_RECENT = 20  # refreshes
_RUNS_KEPT = 100
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The mean duration of ``count`` refreshes in seconds, in which the last twenty have the most weight. The
    engine multiplies it by the ``cost`` of the item (1 by default).

    >>> MeasuredCost().add(2.0).add(4.0)
    MeasuredCost(mean=3.0, count=2)
    """

    mean: float = 0.0
    count: int = 0

    def add(self, measured: float) -> MeasuredCost:
        count = self.count + 1
        return MeasuredCost(self.mean + (measured - self.mean) / min(count, _RECENT), count)


class ViewTracker:
    """Records readings and refreshes, and derives which views are stale and how often each view changes."""

    def __init__(self) -> None:
        self._seen: Catalogue | None = None
        self._stamps: dict[str, Stamp] = {}
        self._reset, self._time_s = "", float("-inf")
        self._window: dict[str, Stamp] = {}
        self._window_s = float("-inf")
        self._elapsed_s = 0.0
        self._changed: frozenset[str] = frozenset()
        self._rates: dict[str, RateEstimate] | None = None
        self._dispersions: dict[str, float | None] = {}
        self.states: dict[str, State] = {}
        self._versions: dict[str, int] = {}
        self._refreshed_s: dict[str, float] = {}
        self._stale_since: dict[str, float] = {}
        self._complete_s: dict[str, float] = {}
        self.costs: dict[str, MeasuredCost] = {}
        self._by_length: dict[str, dict[int, WriteTally]] = {}
        self._last: dict[str, list[Reading]] = {}
        self.failures: dict[str, int] = {}
        """The number of failed refreshes since the last one that succeeded, by view."""
        self._runs: list[str] = []
        self.overhead = MeasuredCost()
        """The seconds of a run of the user that no refresh took."""

    def record_reading(self, seen: Catalogue, *, keeps_old: bool = False) -> None:
        """Record a reading of the catalogue: find what changed since the last one, and the stale views. With
        ``keeps_old``, a reading that is older than the last refresh of a view counts for that view, because
        its state was compared with the time of the refresh."""
        self._compare(seen)
        for view in seen.views:
            refreshed_s = self._refreshed_s.get(view, float("-inf"))
            if seen.time_s < refreshed_s and not keeps_old:
                continue  # the reading began before the last refresh of the view
            time_s = max(seen.time_s, refreshed_s)
            self._detect_foreign_refresh(view, seen)
            if not is_stale(view, seen, self.states.get(view)):
                self._stale_since.pop(view, None)
                self._complete_s[view] = time_s
            elif view in self.states:
                self._stale_since.setdefault(view, time_s)
        by_view: tuple[dict[str, Any], ...] = (self.states, self._versions, self._refreshed_s)
        for known in (*by_view, self._stale_since, self._complete_s, self.costs, self._by_length, self._last):
            for name in known.keys() - seen.relations.keys():
                del known[name]
        self._seen, self._rates = seen, None
        self._stamps = {name: one.stamp for name, one in seen.relations.items()}
        self._reset, self._time_s = seen.reset, seen.time_s

    def record_refresh(self, view: str, seen: Catalogue, version: int | None, seconds: float) -> None:
        """Record a refresh of ``view`` that started just after the reading ``seen`` and took ``seconds``.
        ``version`` identifies the file of the view after the refresh; None if the next reading shows it."""
        self.states[view] = state_after(view, seen, self.states)
        self._versions.pop(view, None)
        if version is not None:
            self._versions[view] = version
        self._refreshed_s[view] = seen.time_s
        self._stale_since.pop(view, None)
        self._complete_s[view] = seen.time_s
        self.costs[view] = self.costs.get(view, MeasuredCost()).add(seconds)
        self.failures.pop(view, None)

    def record_failure(self, view: str) -> None:
        self.failures[view] = self.failures.get(view, 0) + 1

    def knows_run(self, name: str, overhead_s: float) -> bool:
        """Return whether a run of the user was recorded before. If not, remember it and its overhead."""
        if self.has_run(name):
            return True
        self._runs = [*self._runs[1 - _RUNS_KEPT :], name]
        self.overhead = self.overhead.add(overhead_s)
        return False

    def has_run(self, name: str) -> bool:
        """Return whether a run of the user was recorded."""
        return name in self._runs

    def built_s(self, view: str) -> float:
        """Return the start of the last refresh of a view (Unix seconds); −∞ if there was none."""
        return self._refreshed_s.get(view, -math.inf)

    def contain(self, view: str, part: str, stamp: Stamp) -> None:
        """Record that the last refresh of a view contained what the part has now."""
        if view in self.states:
            self.states[view] = {**self.states[view], part: stamp}

    def confirm_fresh(self, view: str, seen: Catalogue) -> None:
        """Record that a view is stated to be fresh in the reading ``seen``: it contains all changes."""
        self.states[view] = {name: seen.relations[name].stamp for name in seen.parts(view)}

    @property
    def stamps(self) -> Mapping[str, Stamp]:
        """The stamps of the last reading, by the names of tables and views."""
        return self._stamps

    @property
    def tallies(self) -> dict[str, WriteTally]:
        """The tally of each table, with the length of counting period that tells most about its rate."""
        return {name: most_informative(tallies.values()) for name, tallies in self._by_length.items()}

    def reports(self) -> dict[str, StalenessReport]:
        seen = self._seen
        if seen is None:
            return {}
        if self._rates is None:
            tallies = self.tallies
            self._rates = view_rates(seen.pairs(), tallies)
            self._dispersions = {
                view: overall_dispersion(tallies[base] for base in seen.bases(view) if base in tallies)
                for view in seen.views
            }
        return {view: self._report(view, seen, self._rates.get(view)) for view in seen.views}

    def pack(self) -> bytes:
        packed = {
            "format": _FORMAT,
            "time_s": self._time_s if self._stamps else None,
            "reset": self._reset,
            "stamps": _pack_stamps(self._stamps),
            "window_s": self._window_s if self._window else None,
            "window": _pack_stamps(self._window),
            "states": {view: _pack_stamps(state) for view, state in self.states.items()},
            "versions": self._versions,
            "stale_since": self._stale_since,
            "complete_s": self._complete_s,
            "refreshed_s": self._refreshed_s,
            "failures": self.failures,
            "runs": self._runs,
            "overhead": [self.overhead.mean, self.overhead.count],
            "costs": {view: [cost.mean, cost.count] for view, cost in self.costs.items()},
            "tallies": {
                name: {length: astuple(tally) for length, tally in tallies.items()}
                for name, tallies in self._by_length.items()
            },
            "last": self._last,
        }
        return json.dumps(packed, separators=(",", ":")).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> ViewTracker:
        """Return the tracker that ``pack`` saved, or an empty tracker if the bytes cannot be read."""
        tracker = cls()
        try:
            found: dict[str, Any] = json.loads(packed)
            if found["format"] != _FORMAT or found["time_s"] is None:
                return tracker
            tracker._stamps = _read_stamps(found["stamps"])
            tracker.states = {view: _read_stamps(state) for view, state in found["states"].items()}
            tracker._versions = {view: int(version) for view, version in found["versions"].items()}
            tracker._stale_since = {view: float(since) for view, since in found["stale_since"].items()}
            complete = found.get("complete_s", {})  # states that older versions saved have none
            refreshed = found.get("refreshed_s", {})
            tracker._refreshed_s = {view: float(time_s) for view, time_s in refreshed.items()}
            tracker.failures = {view: int(count) for view, count in found.get("failures", {}).items()}
            tracker._runs = [str(name) for name in found.get("runs", ())]
            mean, count = found.get("overhead", (0.0, 0))
            tracker.overhead = MeasuredCost(float(mean), int(count))
            tracker._complete_s = {view: float(time_s) for view, time_s in complete.items()}
            tracker.costs = {
                view: MeasuredCost(float(mean), int(count)) for view, (mean, count) in found["costs"].items()
            }
            tracker._by_length = {
                name: {int(length): WriteTally(*map(float, parts)) for length, parts in tallies.items()}
                for name, tallies in found["tallies"].items()
            }
            tracker._last = {
                name: [(float(seconds), int(rows)) for seconds, rows in last]
                for name, last in found.get("last", {}).items()
            }
            if found["window_s"] is not None:
                tracker._window, tracker._window_s = _read_stamps(found["window"]), float(found["window_s"])
            tracker._reset, tracker._time_s = str(found["reset"]), float(found["time_s"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()
        return tracker

    def _compare(self, seen: Catalogue) -> None:
        """Find the parts that changed since the last reading. If the present counting period has lasted
        ``WINDOW_S`` seconds, add the writes of each table to its tally and start the next period."""
        elapsed_s = seen.time_s - self._time_s
        if elapsed_s == 0 and self._reset == seen.reset:
            self._elapsed_s, self._changed = 0.0, frozenset()  # the same reading once more
            return
        comparable = self._reset == seen.reset and 0 < elapsed_s < float("inf")
        now = {name: seen.relations[name].stamp for view in seen.views for name in seen.parts(view)}
        self._elapsed_s = elapsed_s if comparable else 0.0
        changed = (name for name, stamp in now.items() if self._stamps.get(name) != stamp)
        self._changed = frozenset(changed if comparable else ())
        window_s = seen.time_s - self._window_s
        if comparable and window_s < WINDOW_S - _EARLY_S:
            return
        if comparable and window_s < float("inf"):
            self._observe(seen, now, window_s)
        self._window, self._window_s = now, seen.time_s

    def _observe(self, seen: Catalogue, now: Mapping[str, Stamp], window_s: float) -> None:
        # Readings can be late, because they wait for the budget. The estimator assumes periods of one length,
        # so there is one tally for each power of two of the length.
        for name, stamp in now.items():
            before = self._window.get(name)
            rows = None if before is None else rows_written(before, stamp)
            if rows is not None and seen.relations[name].has_counters:  # None: new, or its counter was reset
                self.count_writes(name, (window_s, rows))

    def count_writes(self, name: str, reading: Reading) -> None:
        """Add a reading to the tally of a table. After a sharp change of the rate, forget what was before."""
        tallies, length = self._by_length.setdefault(name, {}), _length(reading)
        _add(tallies, reading)
        last = self._last[name] = [*self._last.get(name, ())[1 - LAST_READINGS :], reading]
        since = readings_since_change([each for each in last if _length(each) == length], tallies[length])
        if since:
            self._by_length[name], self._last[name] = {}, list(since)
            for each in since:
                _add(self._by_length[name], each)

    def _detect_foreign_refresh(self, view: str, seen: Catalogue) -> None:
        """Detect a refresh by another program since the last reading; it gives the view a new file."""
        version = seen.relations[view].stamp.version
        if view in self.states:
            self._versions.setdefault(view, version)
        if self._versions.get(view, version) != version:
            self.states[view] = state_after(view, seen.with_stamps(self._stamps), self.states)
            self._versions[view] = version
            self._stale_since.pop(view, None)
            self._complete_s[view] = self._time_s

    def _report(self, view: str, seen: Catalogue, rate: RateEstimate | None) -> StalenessReport:
        state, cost = self.states.get(view), self.costs.get(view)
        estimate = rate if rate is not None and rate.polls > 0 else None
        return StalenessReport(
            elapsed_s=self._elapsed_s,
            changed=bool(self._changed & seen.parts(view)),
            stale_since_s=self._stale_since.get(view),
            known=is_known(view, seen, state),
            rate_per_s=estimate.rate if estimate else None,
            low_per_s=estimate.low if estimate else None,
            high_per_s=estimate.high if estimate else None,
            cost_s=cost.mean if cost else None,
            below=tuple(sorted(seen.upstream(view))),
            dispersion=self._dispersions.get(view),
            complete_s=self._complete_s.get(view),
        )


def _add(tallies: dict[int, WriteTally], reading: Reading) -> None:
    """Add a reading to the tally of its length."""
    length = _length(reading)
    tallies[length] = tallies.get(length, WriteTally()).add(*reading)


def _length(reading: Reading) -> int:
    """Return the class of the length of a reading: 0 for ``WINDOW_S``, 1 for about twice as long, …"""
    return round(math.log2(max(reading[0] / WINDOW_S, 1.0)))


def _pack_stamps(stamps: Mapping[str, Stamp]) -> dict[str, list[int]]:
    return {name: [one.changes, one.version] for name, one in stamps.items()}


def _read_stamps(found: Mapping[str, Any]) -> dict[str, Stamp]:
    return {name: Stamp(int(changes), int(version)) for name, (changes, version) in found.items()}
