"""Rows as values: what the columns of every database mean in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from afresh.values.items import STATUSES, Item, Status
from afresh.values.lease import Lease

STATUS_CODE: dict[Status, int] = {status: code for code, status in enumerate(STATUSES)}
ACTIVE, PAUSED = STATUS_CODE["active"], STATUS_CODE["paused"]
Row = tuple[Any, ...]


def item_from_row(row: Row) -> Item:
    """A row of ``full_item``: the fields of ``Item`` in order, labels as text, status as code."""
    fields: Row = (*row[:9], mapping_from_text(row[9]), STATUSES[row[10]], *row[11:])
    return Item(*fields)


def text_from_mapping(mapping: Mapping[str, str]) -> str:
    """JSON, as short as it gets.

    >>> text_from_mapping({"lang": "de"})
    '{"lang":"de"}'
    """
    return json.dumps(dict(mapping), separators=(",", ":"))


def mapping_from_text(text: str | None) -> dict[str, str]:
    """The reverse; no text is no entries."""
    return json.loads(text) if text else {}


def lease_from_row(row: Row) -> Lease:
    """A row of ``leased``: the fields of ``Lease`` in order, mappings as text, status as code."""
    fields = list(row)
    for place in (7, 15):
        fields[place] = mapping_from_text(row[place])
    fields[10] = STATUSES[row[10]]
    return Lease(*fields)
