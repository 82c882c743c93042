"""What a source can do beyond polling one item: a record that is made once, when the source is opened.

A source states its abilities in an attribute ``capabilities``. For a source of another package that does not,
``find_capabilities`` looks at its methods.

Staleness can be observed without polls: a view source reads the change counters of all base tables every few
seconds. The difference between two readings is one observation: something below the item changed, or nothing
did. Counts are not taken as numbers of changes, because one transaction may write many rows. The engine uses
a report of an item of weight w, cost c (``cost_s``) and change rate λ (``rate_per_s``) in this way:

    fresh   a poll gains nothing: its value is 0 until a change is observed
    stale   a refresh gains 1/λ of fresh time on average: its value is w/(cλ) per unit of cost

This is the rule for change notices with recall 1 and false-positive rate 0: refresh at once every item whose
value is above the shadow price μ of the budget, and leave the others alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from afresh.sources.source import Source
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@dataclass(frozen=True, slots=True)
class StalenessReport:
    """What the last reading says about one item. The field names are stored by the engine as JSON.

    ``elapsed_s``      time since the previous reading; 0 if this reading only sets a new baseline.
    ``changed``        whether anything below the item changed during that time.
    ``stale_since_s``  the first reading that found the copy out of date; None while it is up to date.
    ``known``          False if staleness cannot be observed: something below the item is not counted (a
                       foreign table), or the item has not been refreshed by us yet.
    ``below``          the items that this item is made from. A stale one is refreshed first.
    ``dispersion``     variance over mean of the rows written between readings; 1 for a Poisson number.
    ``rate_per_s`` (with its interval) and ``cost_s``, the mean of recent refreshes, are None while unknown.
    """

    elapsed_s: float
    changed: bool
    stale_since_s: float | None = None
    known: bool = True
    rate_per_s: float | None = None
    low_per_s: float | None = None
    high_per_s: float | None = None
    cost_s: float | None = None
    below: tuple[str, ...] = ()
    dispersion: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether the copy is known to be up to date."""
        return self.known and self.stale_since_s is None


@dataclass(frozen=True, slots=True)
class GroupBackoff:
    """A group that may not be asked until ``until_s`` (Unix seconds), after ``failures`` in a row.

    ``why`` is the reason in one line, without secrets.
    """

    group: str
    until_s: float
    failures: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """The next request of a ``BatchSource``: the keys that it is expected to refresh, and the request itself.

    ``request`` belongs to the source that made the batch; nobody else reads it.
    """

    keys: tuple[str, ...]
    request: object = None


class BulkSource(Source, Protocol):
    """A source that can poll several items of one group with one request.

    The engine gathers up to ``bulk_limit`` items of a group that are due, or nearly due, and polls them
    together. Each item has its own outcome, as if it had been polled alone. The fixed cost of a request is
    shared, so items get cheaper the more of them it serves (Razniewski 2016, §6: bulks).
    """

    def bulk_limit(self, group: str) -> int:
        """Return how many items one request to ``group`` may serve, 1 or more; may change at any time."""

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Poll these items of one group with one request; return one ``Fetched`` per lease, in their order.

        The contract of ``Source.poll`` holds. ``admit`` is awaited once, because there is one request (more
        only to find the key that makes it fail). The engine passes at most ``bulk_limit`` leases. Requests,
        bytes and seconds of the results add up to what was spent. No leases: no request.
        """


class BatchSource(Source, Protocol):
    """A source that decides itself which items its next request refreshes: a query returns a page of records.

    The engine offers the item with the highest poll value, the *lead*. The source answers with a batch. The
    engine leases those items and hands the batch back with the leases. One request at a time.
    """

    def keys(self) -> Sequence[str]:
        """Return the keys of all items; the same list object until the set of items changes."""

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Choose the next request. ``lead`` is the key of an item that is worth a poll.

        The lead need not be part of the batch, but it will be if it is offered again and again.
        ``weights`` says what each of ``keys`` counts for, 0 for items that must not be polled; None means
        that the weights are those of the previous call.
        """

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Send the request of a batch; return one result per lease, None for items that did not come.

        The contract of ``Source.poll`` holds. Keys of the batch that are not leased are in use elsewhere or
        must not be polled; the source does not choose them again for a while. No leases: no request.
        """


class StalenessSource(Source, Protocol):
    """A source that can observe staleness without polling: every pass of ``listings`` takes a reading."""

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        """Return what is known of each item since the last reading and the polls after it; sends nothing."""


class StatefulSource(Protocol):
    """A source that has learned something that must outlive its process.

    The state is opaque to the engine, which stores it and gives it to the successor before its first request.
    Back-offs are separate because they are stored within a second, and because workers exchange them group
    by group.
    """

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the groups that wait longer than their usual delay, or that failed last; bounded."""

    def save_state(self) -> bytes:
        """Return everything else that was learned; bounded."""

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        """Take over what an earlier process or another worker saved.

        What is already known stays, unless the saved state is newer. State of another version is ignored.
        """


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The source under the protocol of each of its abilities; None for an ability that it does not have."""

    bulk: BulkSource | None = None
    batches: BatchSource | None = None
    staleness: StalenessSource | None = None
    state: StatefulSource | None = None


def find_capabilities(source: Source) -> Capabilities:
    """Return what ``source`` states in ``capabilities``, or what its methods show if it states nothing."""
    stated = getattr(source, "capabilities", None)
    if isinstance(stated, Capabilities):
        return stated
    found: Any = source
    if _has(found, "poll_chosen") or _has(found, "recall"):
        found = OldSource(found)
    return Capabilities(
        found if _has(found, "bulk_limit", "poll_many") else None,
        found if _has(source, "choose") else None,
        found if _has(source, "staleness_reports") or _has(source, "evidence") else None,
        found if _has(source, "load_state") or _has(source, "recall") else None,
    )


def _has(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)


def share_cost(fetched: Sequence[Fetched], *, requests: int, seconds: float) -> list[Fetched]:
    """Share the cost of one request among its results: the first carries the requests, each part of the time.

    >>> shared = share_cost([Fetched("unchanged")] * 2, requests=1, seconds=0.5)
    >>> [(one.requests, one.seconds) for one in shared]
    [(1, 0.25), (0, 0.25)]
    """
    each_s = seconds / max(len(fetched), 1)
    return [replace(one, requests=0 if at else requests, seconds=each_s) for at, one in enumerate(fetched)]


class OldSource:
    """A source of another package that follows the optional protocols of version 0.1.0.

    The methods of today call the old ones; everything else is the source's own.
    """

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def keys(self) -> Sequence[str]:
        """See ``BatchSource``; a source that takes no weights need not tell its keys."""
        return self._source.keys() if _has(self._source, "keys", "weigh") else ()

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """See ``BatchSource``. The old source itself remembers the request."""
        if weights is not None and _has(self._source, "keys", "weigh"):
            self._source.weigh(weights)
        return Batch(tuple(await self._source.choose(lead)))

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        del batch
        return list(await self._source.poll_chosen(leases))

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        return dict(self._source.evidence())

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return tuple(self._source.rests()) if _has(self._source, "rests") else ()

    def save_state(self) -> bytes:
        return bytes(self._source.memory() if _has(self._source, "memory") else self._source.notes())

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        """See ``StatefulSource``. ``recall`` had two meanings."""
        if _has(self._source, "memory"):
            self._source.recall(state)
        else:
            self._source.recall(backoffs, state)
