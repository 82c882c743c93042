"""When the next request to a host may start: a pure state machine, the clock an argument.

A host is asked one request at a time, at least a delay apart, later if it said so (Crawl-delay,
Retry-After), and much later while it fails: each failure in a row doubles the rest, for the whole host
and not only for the item that met it. One good answer ends the back-off. Times are those of a clock that
never steps back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

HostCondition: TypeAlias = Literal["fine", "busy", "down"]
"""How a request ended for its host: answered · told us to come later (429, 503) · did not answer at all."""

_MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Politeness:
    """How a host is treated. ``delay_s`` is from start to start; ``longest_rest_s`` bounds every rest."""

    delay_s: float = 1.0
    concurrency: int = 1
    first_rest_s: float = 10.0
    longest_rest_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class HostState:
    """What is remembered of a host; the default is a host never asked.

    It rests until ``next_s`` (``why``, in words), and was asked last at ``asked_s``.
    """

    next_s: float = float("-inf")
    in_flight: int = 0
    failures: int = 0
    crawl_delay_s: float = 0.0
    why: str = ""
    asked_s: float = float("-inf")


def ready_s(host: HostState, manners: Politeness) -> float:
    """When the next request may start: infinite while as many as allowed are in flight.

    >>> asked, manners = record_start(HostState(), 100.0), Politeness(delay_s=2.0)
    >>> ready_s(asked, manners), ready_s(record_end(asked, manners, 100.5, "fine"), manners)
    (inf, 102.0)
    """
    if host.in_flight >= manners.concurrency:
        return float("inf")
    delay_s = max(manners.delay_s, min(host.crawl_delay_s, manners.longest_rest_s))
    return max(host.next_s, host.asked_s + delay_s)


def strictest(first: Politeness, *others: Politeness) -> Politeness:
    """The manners that offend none of these.

    >>> strictest(Politeness(delay_s=1.0), Politeness(delay_s=3.0, longest_rest_s=60.0))
    Politeness(delay_s=3.0, concurrency=1, first_rest_s=10.0, longest_rest_s=86400.0)
    """
    every = (first, *others)
    return Politeness(
        max(each.delay_s for each in every),
        min(each.concurrency for each in every),
        max(each.first_rest_s for each in every),
        max(each.longest_rest_s for each in every),
    )


def record_start(host: HostState, now_s: float) -> HostState:
    """A request starts now."""
    asked_s = max(host.asked_s, now_s)
    return HostState(host.next_s, host.in_flight + 1, host.failures, host.crawl_delay_s, host.why, asked_s)


def record_end(
    host: HostState,
    manners: Politeness,
    now_s: float,
    verdict: HostCondition,
    retry_after_s: float | None = None,
    why: str = "",
) -> HostState:
    """A request ended with this verdict, ``why`` in words where it is not fine.

    A rest is first·2^(failures−1), or what Retry-After asks if that is longer, never beyond the longest.

    >>> host, manners = HostState(in_flight=1), Politeness(first_rest_s=10)
    >>> record_end(host, manners, 0.0, "busy").next_s, record_end(host, manners, 0.0, "busy", 60.0).next_s
    (10.0, 60.0)
    """
    in_flight = max(0, host.in_flight - 1)
    asked_s = retry_after_s or 0.0
    if verdict == "fine":
        next_s = max(host.next_s, now_s + _bounded(asked_s, manners))
        why = why if asked_s > 0 else ""
        return HostState(next_s, in_flight, 0, host.crawl_delay_s, why, host.asked_s)
    failures = host.failures + 1
    rest_s = manners.first_rest_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)
    rest_s = _bounded(max(rest_s, asked_s), manners)
    next_s = max(host.next_s, now_s + rest_s)
    return HostState(next_s, in_flight, failures, host.crawl_delay_s, why, host.asked_s)


def _bounded(rest_s: float, manners: Politeness) -> float:
    return min(max(rest_s, 0.0), manners.longest_rest_s)
