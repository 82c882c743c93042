"""``/metrics`` for Prometheus, in a registry of our own; read from the same looks as the pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from afresh.engine.reporting.pulse import Pulse
from afresh.values.clock import Clock
from afresh.values.errors import StoreError
from afresh.values.items import STATUSES
from afresh.web.context import Context
from afresh.web.watching import Look

STATES = ("running", "stopped", "lost", "none", "no store")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MirrorMetrics(Collector):
    """One look as metrics."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked at before it is asked for."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics; while the store is out of reach that alone, and nothing of before."""
        latency_s = store_latency_s(self._context)
        yield _gauge("store_latency_seconds", "A small read from the store; NaN: it failed.", latency_s)
        try:
            look = self._context.watcher.look(patient=True)
        except StoreError:
            look = None
        if look is None or look.problem or math.isnan(latency_s):
            yield _state("no store")
            return
        yield from _status(look)
        yield _state(look.state)
        if look.pulse is not None:
            yield from _engine(look.pulse)


def _status(look: Look) -> Iterator[Metric]:
    status = look.status
    yield _gauge("freshness_ratio", "Share of weight that is fresh, by the model.", status.freshness.value)
    yield _gauge("freshness_low_ratio", "Lower end of its 95 % interval.", status.freshness.low)
    yield _gauge("freshness_high_ratio", "Upper end of its 95 % interval.", status.freshness.high)
    yield _gauge("audited_freshness_ratio", "The same as random polls found it.", status.audited.value)
    yield _gauge("audits_used", "How many random polls that rests on.", status.audited.n)
    yield _gauge("age_seconds", "Expected weighted mean age of the copies.", status.age_s)
    yield _gauge("due_items", "Items that are due and not yet polled.", status.due)
    yield _gauge("failing_items", "Items that wait after a failure.", status.failing)
    yield _gauge("dropped_items", "Items not worth a poll at this budget.", status.dropped)
    yield _gauge("lag_seconds", "How long the longest due item has waited.", _lag_s(look))
    yield _gauge("budget_requests_per_second", "The budget.", status.budget_per_s)
    yield _gauge("requests_last_hour", "Requests in the last hour.", status.spent_last_hour.requests)
    yield _gauge("store_bytes", "Size of the store.", status.file_bytes)
    yield _gauge("events_waiting", "Changes not yet told to hooks.", status.events)
    yield _gauge("notices_open", "Notices not yet answered by a poll.", status.notices)
    items = GaugeMetricFamily("afresh_items", "Items by status.", labels=["status"])
    for name in STATUSES:
        items.add_metric([name], status.by_status.get(name, 0))
    yield items


def _state(now: str) -> Metric:
    state = GaugeMetricFamily("afresh_engine_state", "1 for the state the engine is in.", labels=["state"])
    for name in STATES:
        state.add_metric([name], float(name == now))
    return state


def _engine(pulse: Pulse) -> Iterator[Metric]:
    polls = CounterMetricFamily("afresh_polls", "Polls since the engine started.", labels=["outcome"])
    unchanged = max(0, pulse.polls - pulse.changes - pulse.failures)
    for outcome, number in (("changed", pulse.changes), ("unchanged", unchanged), ("failed", pulse.failures)):
        polls.add_metric([outcome], number)
    yield polls
    yield _counter("requests", "Requests since the engine started.", pulse.requests)
    yield _counter("audits", "Random polls since the engine started.", pulse.audits)
    yield _gauge("in_flight", "Polls under way.", pulse.in_flight)
    yield _gauge("engine_seen_timestamp_seconds", "The engine's last sign of life.", pulse.time_s)


def exposition(context: Context) -> bytes:
    """All metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MirrorMetrics(context))
    return generate_latest(registry)


def store_latency_s(context: Context) -> float:
    """What a small read takes now; NaN where it fails."""
    clock: Clock = context.clock
    begun_s = clock.elapsed_s()
    try:
        context.engine.store.state.names()
    except StoreError:
        return math.nan
    return clock.elapsed_s() - begun_s


def _lag_s(look: Look) -> float:
    return max(0.0, look.time_s - look.longest_due_s)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"afresh_{name}", words, value=value)


def _counter(name: str, words: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"afresh_{name}", words, value=value)
