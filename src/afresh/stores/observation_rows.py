"""Observations between arrays and rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from afresh.stores.rows import Row
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns


def by_item(columns: ObservationColumns) -> Iterator[tuple[int, list[Observation]]]:
    """The observations of each item in order of time, items by id."""
    order = np.lexsort((columns.time_s, columns.item_id))
    item_ids, starts = np.unique(columns.item_id[order], return_index=True)
    ends = [*starts[1:].tolist(), order.size]
    for item_id, start, end in zip(item_ids.tolist(), starts.tolist(), ends, strict=True):
        yield item_id, _observations(columns, order[start:end].tolist())


def audit_rows(seen: Sequence[Observation]) -> list[Row]:
    """Those that are audits, as every database keeps them."""
    return [(s.item_id, s.time_s, s.elapsed_s, s.changed, s.modified_s, s.count) for s in seen if s.audit]


def audit_columns(rows: Sequence[Row]) -> ObservationColumns:
    """The reverse."""
    columns: list[Row] = list(zip(*rows, strict=True)) if rows else [()] * 6
    item_id, time_s, elapsed_s, changed, modified_s, count = columns
    return ObservationColumns(
        np.array(item_id, dtype=np.int64),
        np.array(time_s, dtype=np.float64),
        np.array(elapsed_s, dtype=np.float64),
        np.array(changed, dtype=bool),
        np.array(modified_s, dtype=np.float64),
        np.array(count, dtype=np.float64),
        np.ones(len(rows), dtype=bool),
    )


def _observations(columns: ObservationColumns, order: list[int]) -> list[Observation]:
    modified, count = columns.modified_s.tolist(), columns.count.tolist()
    return [
        Observation(
            int(columns.item_id[i]),
            float(columns.time_s[i]),
            float(columns.elapsed_s[i]),
            bool(columns.changed[i]),
            None if math.isnan(modified[i]) else modified[i],
            None if math.isnan(count[i]) else int(count[i]),
            bool(columns.audit[i]),
        )
        for i in order
    ]
