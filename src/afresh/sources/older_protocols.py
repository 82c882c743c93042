"""Adapts sources of other packages that follow the optional protocols of version 0.1.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from afresh.sources.capabilities import Batch, Capabilities, GroupBackoff
from afresh.sources.staleness import StalenessReport
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


def adapt_old_methods(source: Any) -> Capabilities:
    """Return the abilities that the methods of version 0.1.0 show."""
    old: Any = OldSource(source)
    stateful = _has(source, "evidence", "memory", "recall") or _has(source, "rests", "notes", "recall")
    return Capabilities(
        batches=old if _has(source, "choose", "poll_chosen") else None,
        staleness=old if _has(source, "evidence", "memory", "recall") else None,
        state=old if stateful else None,
    )


def _has(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)


class OldSource:
    """Calls the methods of version 0.1.0 for those of today; everything else is the source's own."""

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
        """See ``BatchSource``."""
        del batch
        found: list[Fetched | None] = await self._source.poll_chosen(leases)
        return found

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        """See ``StalenessSource``."""
        found: Mapping[str, StalenessReport] = self._source.evidence()
        return found

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """See ``StatefulSource``."""
        return tuple(self._source.rests()) if _has(self._source, "rests") else ()

    def save_state(self) -> bytes:
        """See ``StatefulSource``."""
        saved: bytes = self._source.memory() if _has(self._source, "memory") else self._source.notes()
        return saved

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        """See ``StatefulSource``. ``recall`` had two meanings."""
        if _has(self._source, "memory"):
            self._source.recall(state)
        else:
            self._source.recall(backoffs, state)
