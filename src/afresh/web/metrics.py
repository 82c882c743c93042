"""Serves ``/metrics`` for Prometheus, from the same snapshots as the pages."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from afresh.engine.reporting.pulse import Pulse
from afresh.values.errors import StoreError
from afresh.values.items import STATUSES
from afresh.web.dashboard_data import DashboardData
from afresh.web.reports.dashboard_figures import FIGURES, STATE_TITLES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsCollector(Collector):
    """Collects all metrics from one snapshot."""

    def __init__(self, data: DashboardData) -> None:
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
    yield _gauge("in_flight", "Polls under way.", pulse.in_flight)
    yield _gauge("engine_seen_timestamp_seconds", "The engine's last sign of life.", pulse.time_s)


def expose_metrics(data: DashboardData) -> bytes:
    registry = CollectorRegistry(auto_describe=False)  # registering must not read the store
    registry.register(MetricsCollector(data))
    return generate_latest(registry)


def measure_latency_s(data: DashboardData) -> float:
    """Return how many seconds a small read from the store takes now; NaN if it fails."""
    started_s = data.clock.elapsed_s()
    try:
        data.engine.store.state.names()
    except StoreError:
        return math.nan
    return data.clock.elapsed_s() - started_s


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"afresh_{name}", meaning, value=value)
