"""What an imported file holds, and which reader reads which file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from afresh.values.errors import InputError, UsageError
from afresh.values.reported import Reported


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """An item of an imported file. If the file says nothing about intervals, ``max_interval_s`` is infinite
    and ``min_interval_s`` is 0."""

    key: str
    weight: float = 1.0
    cost: float = 1.0
    min_interval_s: float = 0.0
    max_interval_s: float = float("inf")
    selector: str = ""
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class ImportedList:
    """Everything that an imported file holds. ``polls`` are past versions of the items, as polls that
    another program made. ``skipped`` has a reason for each entry that cannot be an item."""

    items: tuple[ImportedItem, ...] = ()
    feeds: tuple[str, ...] = ()
    polls: tuple[Reported, ...] = ()
    skipped: tuple[str, ...] = field(default=())


Reader: TypeAlias = Callable[[bytes, str], ImportedList]
"""A function that reads the content of a file, whose name is for messages."""

_MOST_BYTES = 1_000_000_000


def read_import(path: str) -> ImportedList:
    """Read a file of another program. Its kind follows from its name, or else from its beginning."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    name = path.lower()
    if name.endswith(".gz") and not name.endswith(".warc.gz"):
        try:
            # A few kilobytes may unpack to many gigabytes, so no more than the limit is unpacked.
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: is not a whole gzip file: {error}") from None
        name = name.removesuffix(".gz")
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: is larger than 1 GB: give it in parts")
    return _reader(name, content)(content, path)


def _reader(name: str, content: bytes) -> Reader:
    from afresh.cli.engine.imports import changedetection, csv_list, opml, urlwatch, web_archives

    readers: dict[tuple[str, ...], Reader] = {
        (".json",): changedetection.read_changedetection,
        (".zip",): changedetection.read_backup,
        (".yaml", ".yml"): urlwatch.read_urlwatch,
        (".opml", ".xml"): opml.read_opml,
        (".csv",): csv_list.read_csv,
        (".cdx", ".cdxj"): web_archives.read_cdx,
        (".warc", ".warc.gz"): web_archives.read_warc,
    }
    for endings, reader in readers.items():
        if name.endswith(endings):
            return reader
    start = content[:2000].lstrip()
    for beginning, reader in (
        (b"{", changedetection.read_changedetection),
        (b"PK", changedetection.read_backup),
        (b"<", opml.read_opml),
        (b"WARC/", web_archives.read_warc),
        (b"CDX ", web_archives.read_cdx),
    ):
        if start.startswith(beginning):
            return reader
    known = ", ".join(ending for endings in readers for ending in endings)
    raise UsageError(f"--import {name}: unknown kind of file: name it with one of {known}")
