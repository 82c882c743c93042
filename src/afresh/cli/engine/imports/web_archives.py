"""Web archives: indexes (CDX) and the archives themselves (WARC). Their versions are past polls.

A capture with another digest than the one before shows a change. Only captures with the status 200, or that
state that nothing changed (``revisit``), count.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.parser import BytesHeaderParser
from hashlib import sha1
from typing import NamedTuple

from afresh.cli.engine.imports.imported import ImportedItem, ImportedList
from afresh.sources.http.follow.addresses import normal_address
from afresh.values.errors import InputError
from afresh.values.reported import Reported

_USUAL_FIELDS = ["N", "b", "a", "m", "s", "k", "S", "V", "g"]  # of a CDX file without a title line
_LONGEST_HEADER = 100_000
_LONGEST_RECORD = 1_000_000_000


class Capture(NamedTuple):
    """One version of a page in an archive. ``digest`` identifies its content."""

    address: str
    time_s: float
    digest: str


def read_cdx(content: bytes, name: str) -> ImportedList:
    """Read an index of the classic form (``urlkey timestamp original …``), or with JSON (CDXJ).

    >>> lines = b"t,a)/ 20200101000000 http://a.test/ text/html 200 AAA 1\\n"
    >>> read_cdx(lines + b"t,a)/ 20200102000000 http://a.test/ text/html 200 BBB 1", "a.cdx").polls[1].changed
    True
    """
    text = content.decode("utf-8", "replace")
    fields, captures = _USUAL_FIELDS, list[Capture]()
    for line in text.splitlines():
        if line.strip().startswith("CDX "):
            fields = line.split()[1:]
        elif line.strip():
            found = _cdx_capture(line, fields)
            captures += [found] if found is not None else []
    if not captures:
        raise InputError(f"{name}: has no line with a timestamp, an address, the status 200 and a digest")
    return _as_list(captures)


def _cdx_capture(line: str, fields: list[str]) -> Capture | None:
    if "{" in line:
        _, stamp, rest = line.split(" ", 2) if line.count(" ") >= 2 else ("", "", "{}")
        try:
            about = json.loads(rest)
        except (ValueError, RecursionError):
            return None
        if not isinstance(about, dict):
            return None
        cells = {"b": stamp, "a": about.get("url"), "s": about.get("status"), "k": about.get("digest")}
    else:
        cells = dict(zip(fields, line.split(), strict=False))
    status, address, digest = str(cells.get("s") or ""), cells.get("a"), cells.get("k")
    time_s = _stamp_s(str(cells.get("b") or ""))
    if status not in ("200", "-") or not isinstance(address, str) or not digest or time_s is None:
        return None
    return Capture(address, time_s, str(digest))


def _stamp_s(stamp: str) -> float | None:
    try:
        return datetime.strptime(stamp[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def read_warc(content: bytes, name: str) -> ImportedList:
    """Read the responses of an archive, which may be compressed record by record."""
    stream: io.BufferedIOBase = io.BytesIO(content)
    if content[:2] == b"\x1f\x8b":  # unpacked as it is read: a record at a time is in memory
        stream = gzip.GzipFile(fileobj=stream)
    try:
        captures = list(_warc_captures(stream))
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise InputError(f"{name}: is not a whole WARC file: {error}") from None
    if not captures:
        raise InputError(f"{name}: has no response with the status 200")
    return _as_list(captures)


def _warc_captures(stream: io.BufferedIOBase) -> Iterator[Capture]:
    while True:
        line = stream.readline(_LONGEST_HEADER)
        if not line:
            return
        if not line.strip():
            continue
        if not line.startswith(b"WARC/"):
            raise ValueError(f"a record begins with {line[:20]!r}")
        head = BytesHeaderParser().parsebytes(b"".join(_header_lines(stream)))
        length = str(head.get("Content-Length", "0"))
        if not (length.isascii() and length.isdigit()) or int(length) > _LONGEST_RECORD:
            raise ValueError(f"a record has the Content-Length {length[:20]!r}")
        block = stream.read(int(length))
        if head.get("WARC-Type") in ("response", "revisit"):
            status, body = _http_parts(block)
            if status == 200 or (head.get("WARC-Type") == "revisit" and status in (None, 304)):
                digest = head.get("WARC-Payload-Digest") or sha1(body, usedforsecurity=False).hexdigest()
                address = str(head.get("WARC-Target-URI", "")).strip("<>")
                moment = datetime.fromisoformat(str(head.get("WARC-Date", "")).replace("Z", "+00:00"))
                yield Capture(address, moment.timestamp(), digest)


def _header_lines(stream: io.BufferedIOBase) -> Iterator[bytes]:
    left = _LONGEST_HEADER
    while (line := stream.readline(left)).strip():
        left -= len(line)
        if left <= 0:
            raise ValueError(f"the header of a record has more than {_LONGEST_HEADER} bytes")
        yield line


def _http_parts(block: bytes) -> tuple[int | None, bytes]:
    """Return a tuple (status, body) of a recorded answer."""
    head, _, body = block.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    status = words[1] if len(words) > 1 and words[0].startswith(b"HTTP/") else b""
    return (int(status) if status.isdigit() and len(status) == 3 else None), body


def _as_list(captures: Iterable[Capture]) -> ImportedList:
    """Return the pages as items, and their captures as polls, each page's in the order of time."""
    known: dict[str, list[Capture]] = {}
    skipped = []
    for capture in captures:
        address = normal_address(capture.address)
        if address is None:
            skipped.append(f"{capture.address!r}: not an http or https address")
        else:
            known.setdefault(address, []).append(capture)
    polls: list[Reported] = []
    for address, versions in known.items():
        before: Capture | None = None
        for capture in sorted(versions, key=lambda one: one.time_s):
            if before is None or capture.time_s > before.time_s:
                changed = before is not None and capture.digest != before.digest
                polls.append(Reported(address, capture.time_s, changed=changed, row=len(polls) + 1))
                before = capture
    items = tuple(ImportedItem(address) for address in known)
    return ImportedList(items, polls=tuple(polls), skipped=tuple(dict.fromkeys(skipped)))
