"""One answer of a server with records, from a web API, a database or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.sources.sql.connections import KeyedRecord


@dataclass(frozen=True, slots=True)
class RecordsAnswer:
    """One answer of a server. If it has a ``problem``, it contains no records.

    ``total`` is the number of matching records on all pages, None if the server does not report it. ``next``
    is the token or the address of the next page. ``has_more`` says whether there is one, None if only the
    total can tell. ``cursors`` are the values of the cursor of the records, if they have one; ``left_out``
    are the keys of records that do not fulfil the condition ``where``. ``adoptable`` are the texts, by
    column, of records that fulfil the condition ``adopt``, by key.

    ``refused`` is True if the server must not be asked. ``retry_after_s`` are the seconds to wait before the
    next request; ``busy`` is True if the server itself asked for this wait, ``limited`` if it asked for fewer
    requests. ``status`` is the HTTP status. The other fields are the cost of the answer."""

    records: tuple[KeyedRecord, ...] = ()
    total: int | None = None
    requests: int = 1
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    refused: bool = False
    retry_after_s: float | None = None
    busy: bool = False
    limited: bool = False
    next: str = ""
    has_more: bool | None = None
    cursors: tuple[object, ...] = ()
    left_out: tuple[str, ...] = ()
    status: int | None = None
    adoptable: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
