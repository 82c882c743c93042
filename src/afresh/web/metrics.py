"""Serves ``/metrics`` for Prometheus, from the same snapshots as the pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from afresh.engine.reporting.pulse import Pulse
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.scheduler.poll_costs import PollTallies, Tally
from afresh.values.errors import StoreError
from afresh.values.items import STATUSES
from afresh.web.dashboard_data import ProjectData
from afresh.web.reports.dashboard_figures import FIGURES, STATE_TITLES

MOST_VIEWS = 500  # more series would be too many for a Prometheus server
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsCollector(Collector):
    """Collects all metrics from one snapshot."""

    def __init__(self, data: ProjectData) -> None:
        self._data = data

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. If the store cannot be read, yield only its latency (NaN) and the state."""
        latency_s = measure_latency_s(self._data)
        yield _gauge("store_latency_seconds", "A small read from the store; NaN: it failed.", latency_s)
        try:
            snapshot = self._data.snapshots.get(wait=True)
        except StoreError:
            snapshot = None
        if snapshot is None or snapshot.problem or math.isnan(latency_s):
            yield _engine_state("no store")
            return
        for figure in FIGURES:
            if figure.metric:
                yield _gauge(figure.metric, figure.meaning, figure.read(snapshot))
        items = GaugeMetricFamily("afresh_items", "Items by status.", labels=["status"])
        for name in STATUSES:
            items.add_metric([name], snapshot.status.by_status.get(name, 0))
        yield items
        yield _engine_state(snapshot.state)
        if snapshot.pulse is not None:
            yield from _engine_counts(snapshot.pulse)
        yield from _counts_by_name(snapshot.tallies)
        yield from _view_gauges(snapshot.status.views)


def _engine_state(current: str) -> Metric:
    state = GaugeMetricFamily("afresh_engine_state", "1 for the state the engine is in.", labels=["state"])
    for name in STATE_TITLES:
        state.add_metric([name], float(name == current))
    return state


def _engine_counts(pulse: Pulse) -> Iterator[Metric]:
    polls = CounterMetricFamily("afresh_polls", "Polls since the engine started.", labels=["outcome"])
    unchanged = max(0, pulse.polls - pulse.changes - pulse.failures)
    for outcome, number in (("changed", pulse.changes), ("unchanged", unchanged), ("failed", pulse.failures)):
        polls.add_metric([outcome], number)
    yield polls
    requests, audits = "Requests since the engine started.", "Random polls since the engine started."
    yield CounterMetricFamily("afresh_requests", requests, value=pulse.requests)
    yield CounterMetricFamily("afresh_audits", audits, value=pulse.audits)
    seconds = "Seconds of requests and refreshes since the engine started."
    yield CounterMetricFamily("afresh_seconds", seconds, value=pulse.seconds)
    yield _gauge("in_flight", "Polls under way.", pulse.in_flight)
    yield _gauge("engine_seen_timestamp_seconds", "The engine's last sign of life.", pulse.time_s)


def _counts_by_name(tallies: PollTallies) -> Iterator[Metric]:
    """Yield the counts of each source, of the busiest hosts and views, and of the others together."""
    source_polls, host_polls = (
        CounterMetricFamily(f"afresh_{what}_polls", f"Polls of each {what}, by outcome.", labels=labels)
        for what, labels in (("source", ["source", "outcome"]), ("host", ["source", "host", "outcome"]))
    )
    source_s = CounterMetricFamily(
        "afresh_source_seconds", "Seconds of requests by source.", labels=["source"]
    )
    host_s = CounterMetricFamily(
        "afresh_host_seconds", "Seconds of requests by host.", labels=["source", "host"]
    )
    for (source, _), tally in tallies.sources.items():
        source_s.add_metric([source], tally.seconds)
        _add_outcomes(source_polls, [source], tally)
    for key, tally in tallies.hosts.items():
        host_s.add_metric([*key], tally.seconds)
        _add_outcomes(host_polls, [*key], tally)
    yield from (source_polls, source_s, host_polls, host_s)
    labels = ["source", "view"]
    refreshes, seconds, failures = (
        CounterMetricFamily(f"afresh_view_{name}", f"{words} by view.", labels=labels)
        for name, words in (
            ("refreshes", "Refreshes that succeeded"),
            ("refresh_seconds", "Seconds of refreshing"),
            ("failures", "Refreshes that failed"),
        )
    )
    for key, tally in tallies.views.items():
        refreshes.add_metric([*key], tally.polls - tally.failures)
        seconds.add_metric([*key], tally.seconds)
        failures.add_metric([*key], tally.failures)
    yield from (refreshes, seconds, failures)


def _add_outcomes(family: CounterMetricFamily, labels: list[str], tally: Tally) -> None:
    unchanged = max(tally.polls - tally.changes - tally.failures, 0)
    counts = (("changed", tally.changes), ("unchanged", unchanged), ("failed", tally.failures))
    for outcome, number in counts:
        family.add_metric([*labels, outcome], number)


def _view_gauges(views: Sequence[WatchedItem]) -> Iterator[Metric]:
    """Yield staleness and target lag of the views, of at most ``MOST_VIEWS`` in the order of their names."""
    labels = ["source", "view"]
    stale = GaugeMetricFamily("afresh_view_stale_seconds", "How long a view has been stale.", labels=labels)
    target = GaugeMetricFamily("afresh_view_target_lag_seconds", "The target lag of a view.", labels=labels)
    for view in views[:MOST_VIEWS]:
        stale.add_metric([view.source, view.item], view.stale_for_s)
        if not math.isnan(view.target_lag_s):
            target.add_metric([view.source, view.item], view.target_lag_s)
    yield from (stale, target)


def expose_metrics(data: ProjectData) -> bytes:
    registry = CollectorRegistry(auto_describe=False)  # registering must not read the store
    registry.register(MetricsCollector(data))
    return generate_latest(registry)


def measure_latency_s(data: ProjectData) -> float:
    """Return how many seconds a small read from the store takes now; NaN if it fails."""
    started_s = data.clock.elapsed_s()
    try:
        data.project.check_store()
    except StoreError:
        return math.nan
    return data.clock.elapsed_s() - started_s


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"afresh_{name}", meaning, value=value)
