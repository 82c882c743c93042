"""What an imported file holds, and which reader reads which file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from afresh.sources.parsing.parse_budget import ParseBudget, ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.errors import AfreshError, InputError, UsageError
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
_LEAST_MEMORY_BYTES, _MEMORY_PER_BYTE, _MOST_MEMORY_BYTES = 200_000_000, 64, 4_000_000_000
_LEAST_S, _S_PER_MEGABYTE = 20.0, 10.0  # YAML takes the longest
_BY_RECORDS = ("read_cdx", "read_warc")  # a record at a time is in memory


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
    reader = _reader(name, content)
    return (
        reader(content, path)
        if reader.__name__ in _BY_RECORDS
        else _read_within_limits(reader, content, path)
    )


def _read_within_limits(reader: Reader, content: bytes, path: str) -> ImportedList:
    """Call a reader in a process with limits of time and memory: a few hundred bytes of YAML may stand for
    gigabytes, and every parser takes many times the size of its input."""
    with ParserPool(1, _budget).joined() as parsers:
        try:
            found = parsers.parse_here(_read_or_refuse, content, reader, path, small=0)
        except ParseBudgetError as error:
            raise InputError(f"{path}: cannot be read: {error}") from None
    if isinstance(found, str):
        raise InputError(found)
    return found


def _budget(size_bytes: int) -> ParseBudget:
    megabytes = size_bytes / 1e6
    memory = min(_LEAST_MEMORY_BYTES + _MEMORY_PER_BYTE * size_bytes, _MOST_MEMORY_BYTES)
    return ParseBudget(_LEAST_S + _S_PER_MEGABYTE * megabytes, memory)


def _read_or_refuse(content: bytes, reader: Reader, path: str) -> ImportedList | str:
    """Return the list, or why it cannot be read."""
    try:
        return reader(content, path)
    except AfreshError as error:
        return str(error)


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
            if reader is urlwatch.read_urlwatch:
                urlwatch.check_yaml(name)
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
