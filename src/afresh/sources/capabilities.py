"""What a source can do beyond polling one item.

A source states this in its attribute ``capabilities``. If a source of another package has no such attribute,
``find_capabilities`` looks at its methods. The engine reads the capabilities once, when it opens the source.

Some sources observe staleness without polls. A view source reads the change counters of the tables that its
views are computed from, every few seconds. Two readings give one observation for each view: whether any of
its tables changed in between. The size of the difference is not used, because one transaction may write many
rows. The poll value of an item with weight w, cost c in seconds and λ changes per second is then:

    fresh   0, because a poll gains nothing until a change is observed
    stale   w/(cλ), because the copy stays fresh for 1/λ seconds on average after a refresh

This is the rule for change notices that miss no change and are never false: refresh an item at once if its
poll value is above the shadow price of the budget, and do not refresh it otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from afresh.sources.http.pacing.pace import Pace
from afresh.sources.http.pacing.quota import UsedQuota
from afresh.sources.source import Source
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@dataclass(frozen=True, slots=True)
class StalenessReport:
    """What the last reading of the change counters shows about one item (a view), without a poll of it.

    The engine stores the fields as JSON, under these names. "Its tables" are those that it is computed from.

    ``elapsed_s``      seconds since the previous reading; 0 if there is no reading to compare with.
    ``changed``        whether any of its tables changed between the two readings.
    ``stale_since_s``  the time (Unix seconds) of the first reading that found the copy out of date; None
                       while the copy is up to date.
    ``complete_s``     the last time (Unix seconds) at which the copy is known to have held every change: the
                       start of its refresh, or the last reading that found it up to date; None while unknown.
    ``known``          False if staleness cannot be observed: one of its tables has no counter (a foreign
                       table), or this source has not refreshed the item yet.
    ``rate_per_s``     the estimated changes per second. ``low_per_s`` to ``high_per_s`` is its 90 %
                       confidence interval. All three are None while unknown.
    ``cost_s``         the mean duration of recent refreshes in seconds; None while unknown.
    ``below``          the keys of the items that this item is computed from. Stale ones are refreshed first.
    ``dispersion``     the variance of the number of database rows written between readings, divided by its
                       mean. It is 1 for a Poisson process.
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
    complete_s: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether the copy is known to be up to date."""
        return self.known and self.stale_since_s is None


@dataclass(frozen=True, slots=True)
class GroupBackoff:
    """The back-off of one group: no request is sent to ``group`` before ``until_s`` (Unix seconds).
    ``failures`` is the number of consecutive failures. ``why`` is the reason in one line, without secrets.
    ``pace`` is the pace that the group allows, if it was learned; it outlasts the back-off. ``used`` counts
    requests if the settings have a quota."""

    group: str
    until_s: float
    failures: int = 0
    why: str = ""
    pace: Pace | None = None
    used: UsedQuota | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The next request of a ``BatchSource``, and the ``keys`` of the items that the request should refresh.
    ``request`` has a form that only the source itself understands."""

    keys: tuple[str, ...]
    request: object = None


class BulkSource(Source, Protocol):
    """A source that can poll several items of one group with one request.

    The engine takes up to ``bulk_limit`` items of a group that are due, or nearly due, and polls them
    together. Each item has its own outcome, as if it had been polled alone. The items share the fixed cost of
    the request, so the cost per item falls with the number of items (Razniewski 2016, §6: bulks)."""

    def bulk_limit(self, group: str) -> int:
        """Return how many items one request to ``group`` may poll (at least 1). It may change at any time."""

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Poll items of one group with one request. Return one ``Fetched`` per lease, in the same sequence.

        The contract of ``Source.poll`` applies. The source awaits ``admit`` once, because there is one
        request. If the request fails because of one key, the source may send more requests to find that key.
        The engine passes at most ``bulk_limit`` leases. The requests, bytes and seconds of the results add up
        to the total cost. Without leases, no request is sent."""


class BatchSource(Source, Protocol):
    """A source that chooses the items of its next request itself, because one query returns many records.

    First, the engine calls ``choose`` with the *lead*, the item with the highest poll value, and receives a
    batch. Then it leases the items of the batch, and passes the batch and the leases to ``poll_batch``. Only
    one request runs at a time."""

    def keys(self) -> Sequence[str]:
        """Return the keys of all items. The list object stays the same until the items change."""

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Choose the next request. ``lead`` is the key of the item with the highest poll value.

        The batch need not contain the lead, unless the engine has passed the same lead several times.
        ``weights`` has one number for each key of ``keys()``, 0 for items that must not be polled. None means
        that the weights of the previous call still apply."""

    async def poll_batch(self, batch: Batch, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Send the request of a batch. Return one result per lease, None for an item that the answer lacks.

        The contract of ``Source.poll`` applies. If a key of the batch has no lease, another worker holds the
        lease, or the item must not be polled. The source does not choose such a key again for a while.
        Without any lease, no request is sent."""


class StalenessSource(Source, Protocol):
    """A source that observes staleness without polls: each call of ``listings`` reads its change counters."""

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        """Return a report by item key, from the last reading and the polls since then. No request is sent."""


class StatefulSource(Protocol):
    """A source whose knowledge must survive a restart of the process.

    The engine stores the saved bytes without reading them, and passes them to the source after a restart,
    before the first request. Back-offs are separate from them, because the engine stores a back-off within a
    second, and because workers exchange back-offs group by group."""

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the groups whose last request failed, that wait longer than usual, or that have a learned
        pace (a limited number)."""

    def save_state(self) -> bytes:
        """Return everything that the source has learned, except back-offs, as bytes of limited size."""

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        """Load the state and the back-offs that an earlier process or another worker saved. Saved knowledge
        is used only if it is newer. State in the format of another version is ignored."""


class CursorSource(Source, Protocol):
    """A source whose listings announce changes by a cursor: a value that grows with every change."""

    @property
    def is_cursor_proven(self) -> bool:
        """Whether the cursor moved with all recent changes that polls found. Then items that its listings do
        not announce are polled only at random, to check it."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """The answer to a form: its HTTP status, if any, why it was not taken, and the cost of sending it."""

    status: int | None
    problem: str = ""
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


class FormSender(Source, Protocol):
    """A source that can send a form to a server that one of its documents names, such as a hub of a feed."""

    async def send_form(self, url: str, fields: Mapping[str, str]) -> FormAnswer:
        """Send a form by POST, within the limits of the source. This raises nothing: see ``problem``."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The optional protocols of a source. Each field is the source itself, or None without that protocol."""

    bulk: BulkSource | None = None
    batches: BatchSource | None = None
    staleness: StalenessSource | None = None
    state: StatefulSource | None = None
    cursor: CursorSource | None = None
    forms: FormSender | None = None


def find_capabilities(source: Source) -> Capabilities:
    """Return the capabilities that ``source`` states, or else derive them from the methods that it has."""
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
    """Divide the cost of one call: the first result gets all requests, every result the same time.

    >>> shared = share_cost([Fetched("unchanged")] * 2, requests=1, seconds=0.5)
    >>> [(one.requests, one.seconds) for one in shared]
    [(1, 0.25), (0, 0.25)]
    """
    each_s = seconds / max(len(fetched), 1)
    return [replace(one, requests=0 if at else requests, seconds=each_s) for at, one in enumerate(fetched)]


class OldSource:
    """Adapter for a source of another package that implements the optional protocols of version 0.1.0.
    Methods of the present protocols call the old methods. All other attributes come from the source."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def keys(self) -> Sequence[str]:
        """Implement ``BatchSource.keys``. Only a source that uses weights has to list its keys."""
        return self._source.keys() if _has(self._source, "keys", "weigh") else ()

    async def choose(self, lead: str, weights: Float64s | None = None) -> Batch:
        """Implement ``BatchSource.choose``. The old source keeps the request, so the batch contains none."""
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
        """Implement ``StatefulSource.load_state``. Version 0.1.0 had two forms of ``recall``."""
        if _has(self._source, "memory"):
            self._source.recall(state)
        else:
            self._source.recall(backoffs, state)
