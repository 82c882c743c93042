"""What a source of kind ``api`` saves, for the next process and for other workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.sources.search.saved_records import RecordNote
from afresh.sources.watermarks import Watermarks

_VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedList:
    """What is known of the records, how far the changes have been read, and when all records are listed again
    (Unix seconds). ``read_s`` is the time of the last reading of changes or of the whole list, ``pages`` are
    the keys on each page of it. ``page_sizes`` are the records on a page that were asked for, and those that
    the server gave."""

    records: tuple[RecordNote, ...] = ()
    watermarks: Watermarks = field(default_factory=Watermarks)
    full_s: float = float("-inf")
    read_s: float = float("-inf")
    pages: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    page_sizes: tuple[int, int] = (0, 0)

    def pack(self) -> bytes:
        records = [[one.key, *(round(value, 6) for value in one.numbers), one.fields] for one in self.records]
        marks = [list(pair) for pair in self.watermarks.known]
        found = {"v": _VERSION, "records": records, "watermarks": marks, "pages": dict(self.pages)}
        found["page_sizes"] = self.page_sizes
        times = {name: time_s for name in ("full_s", "read_s") if (time_s := getattr(self, name)) > 0}
        return json.dumps(found | times).encode()


def read_list_state(packed: bytes) -> SavedList:
    """Read a saved state. Return an empty one if it has the format of another version.

    >>> saved = SavedList(watermarks=Watermarks().add(5.0, "2026-01-01", 60.0), full_s=9.0)
    >>> read_list_state(saved.pack()) == saved, read_list_state(b"") == SavedList()
    (True, True)
    """
    known = json.loads(packed) if packed else {}
    if known.get("v") != _VERSION:
        return SavedList()
    return SavedList(
        tuple(RecordNote(*row) for row in known["records"]),
        Watermarks(tuple((time_s, value) for time_s, value in known["watermarks"])),
        known.get("full_s", float("-inf")),
        known.get("read_s", float("-inf")),
        {int(number): tuple(keys) for number, keys in known["pages"].items()},
        tuple(known.get("page_sizes", (0, 0))),
    )
