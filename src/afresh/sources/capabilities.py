"""What a source can do beyond polling one item, as a record that is built once, when the source is opened.

A source states its abilities in its attribute ``capabilities``. If a source of another package does not,
``find_capabilities`` looks at its methods.

Staleness can be observed without polls: a view source reads the change counters of all base tables every few
seconds. The difference between two readings is one observation: a table below the item changed, or none did.
The counters are not taken as numbers of changes, because one transaction may write many rows. The poll value
of an item of weight w, cost c (``cost_s``) and change rate λ (``rate_per_s``) follows from its report:

    fresh   0, because a poll gains nothing until a change is observed
    stale   w/(cλ), because a refresh gains a fresh time of 1/λ on average

This is the rule for change notices that miss no change and are never false: refresh every item whose poll
value is above the shadow price μ of the budget at once, and do not refresh the others.
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
    """What the last reading shows about one item. The engine stores the fields as JSON, under these names.

    ``elapsed_s``      seconds since the previous reading; 0 if there is no reading to compare with.
    ``changed``        whether a table below the item changed during that time.
    ``stale_since_s``  time of the first reading that found the copy out of date; None if it is up to date.
    ``known``          False if staleness cannot be observed: a table below the item has no counter (a foreign
                       table), or this source has not refreshed the item yet.
    ``rate_per_s``     the change rate, from ``low_per_s`` to ``high_per_s``; None while unknown.
    ``cost_s``         the mean duration of recent refreshes in seconds; None while unknown.
    ``below``          the keys of the items that this item is computed from; stale ones are refreshed first.
    ``dispersion``     variance over mean of the database rows written between readings; 1 if Poisson.
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
    """A group that must not be asked before ``until_s`` (Unix seconds), after ``failures`` consecutive
    failures. ``why`` is the reason in one line, without secrets."""

    group: str
    until_s: float
    failures: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """The next request of a ``BatchSource``, and the keys of the items that it is expected to refresh. Only
    the source that made the batch reads ``request``."""

    keys: tuple[str, ...]
    request: object = None


class BulkSource(Source, Protocol):
    """A source that can poll several items of one group with one request.

    The engine gathers up to ``bulk_limit`` items of a group that are due, or nearly due, and polls them
    together. Each item has its own outcome, as if it had been polled alone. The items share the fixed cost of
    the request, so the cost per item falls with their number (Razniewski 2016, §6: bulks).
    """

    def bulk_limit(self, group: str) -> int:
        """Return how many items one request to ``group`` may poll, at least 1; may change at any time."""

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Poll items of one group with one request; return one ``Fetched`` per lease, in the order of
        ``leases``.

        The contract of ``Source.poll`` applies. ``admit`` is awaited once, because there is one request; if
        it fails because of one key, more requests may follow to find that key. The engine passes at most
        ``bulk_limit`` leases. The requests, bytes and seconds of the results add up to the total cost.
        Without leases, no request is sent.
        """


class BatchSource(Source, Protocol):
    """A source that chooses the items of its next request itself, because one query returns many records. The
    engine offers the item with the highest poll value, the *lead*. The source returns a batch. The engine
    leases the items of the batch, and passes batch and leases to ``poll_batch``. Requests do not overlap."""

    def keys(self) -> Sequence[str]:
        """Return the keys of all items; return the same list object as long as the items are the same."""

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Choose the next request. ``lead`` is the key of the item with the highest poll value.

        The batch need not contain the lead, unless the same lead was offered several times. ``weights`` are
        the weights of the items in ``keys``, 0 for items that must not be polled; None means that the weights
        of the previous call still apply.
        """

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Send the request of a batch; return one result per lease, None for items that the answer lacks.

        The contract of ``Source.poll`` applies. Keys of the batch without a lease are leased by another
        worker, or must not be polled; they are not chosen again for a while. Without leases, nothing is sent.
        """


class StalenessSource(Source, Protocol):
    """A source that can observe staleness without polling: every call of ``listings`` makes a reading."""

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        """Return a report on each item, from the last reading and the polls after it, without a request."""


class StatefulSource(Protocol):
    """A source whose knowledge must survive a restart of the process.

    The engine stores the state without reading it, and passes it to the source after a restart, before the
    first request. Back-offs are separate because they are stored within a second, and because workers
    exchange them group by group.
    """

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return a limited number of groups that failed last, or must wait longer than their usual delay."""

    def save_state(self) -> bytes:
        """Return everything that the source has learned, except back-offs, as bytes of limited size."""

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        """Load the state and back-offs that an earlier process or another worker saved. Saved knowledge is
        used only if it is newer. State in the format of another version is ignored."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The source, once for each protocol that it implements; None for the other protocols."""

    bulk: BulkSource | None = None
    batches: BatchSource | None = None
    staleness: StalenessSource | None = None
    state: StatefulSource | None = None


def find_capabilities(source: Source) -> Capabilities:
    """Return the capabilities that ``source`` states, or else those that its methods show."""
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
    """Share the cost of a request among its results: all requests to the first, the time in equal parts.

    >>> shared = share_cost([Fetched("unchanged")] * 2, requests=1, seconds=0.5)
    >>> [(one.requests, one.seconds) for one in shared]
    [(1, 0.25), (0, 0.25)]
    """
    each_s = seconds / max(len(fetched), 1)
    return [replace(one, requests=0 if at else requests, seconds=each_s) for at, one in enumerate(fetched)]


class OldSource:
    """Adapter for a source of another package that implements the optional protocols of version 0.1.0.
    Methods of the present protocols call the old ones; all other attributes are those of the source."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def keys(self) -> Sequence[str]:
        """See ``BatchSource``. A source that ignores weights need not list its keys."""
        return self._source.keys() if _has(self._source, "keys", "weigh") else ()

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """See ``BatchSource``. The old source remembers the request itself, so the batch contains none."""
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
        """See ``StatefulSource``. In 0.1.0, ``recall`` had other parameters in sources with ``memory``."""
        if _has(self._source, "memory"):
            self._source.recall(state)
        else:
            self._source.recall(backoffs, state)
