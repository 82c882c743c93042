"""The progress of a search source: queries sent, records seen, look-ups, the size of the server."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.search.saved_records import ScaleNote, read_state
from afresh.stores.store import Store


@dataclass(frozen=True, slots=True)
class SearchStatus:
    """``seen`` of its ``records`` came so far, ``by_queries`` of them on a page of some query.

    ``queries`` are different ones, which were sent ``sent`` times in all; ``scales`` how many times as many
    results the server has as the relation, or the sample that stands for it, by attribute.
    """

    source: str
    records: int
    seen: int
    by_queries: int
    queries: int
    sent: int
    look_ups: int
    scales: tuple[ScaleNote, ...]


def search_statuses(store: Store, settings: Settings) -> tuple[SearchStatus, ...]:
    """Return the status of each search source that has begun."""
    found = []
    for table in settings.sources:
        name = table.settings.name
        packed = store.state.get(SOURCE_STATE + name) if table.settings.kind == "search" else None
        if packed:
            notes = read_state(packed)
            found.append(
                SearchStatus(
                    name,
                    notes.listed,
                    len(notes.records),
                    notes.found_by_queries,
                    len(notes.queries),
                    sum(query.asked for query in notes.queries),
                    notes.look_ups,
                    tuple(scale for scale in notes.scales if scale.totals),
                )
            )
    return tuple(found)
