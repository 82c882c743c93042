"""Parsers of headers, addresses, messages, records and copies, for the tests with costly inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from afresh.cli.engine.imports.web_archives import read_cdx, read_warc
from afresh.engine.json_rows import parse_report
from afresh.engine.receiving.signatures import is_signed, signed_time_s
from afresh.sources.change_detection import change_size
from afresh.sources.http.decompression import BadEncodingError, Inflater, TooLargeError
from afresh.sources.http.follow.addresses import form_of, normal_address, trap_of
from afresh.sources.http.follow.page_reading import directives
from afresh.sources.http.listings.feeds import links_in_header
from afresh.sources.http.listings.sitemaps import w3c_date_s
from afresh.sources.http.pacing.quota_headers import remaining_quota
from afresh.sources.http.statuses import http_date_s, retry_after_s
from afresh.sources.http.urls import display_url, host_group, resolve_link, without_dots
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.text_decoding import decode, encoding_of
from afresh.sources.web_api.paging import next_address, next_in_headers
from afresh.values.diffs.line_diff import unified_lines
from afresh.values.errors import AfreshError
from afresh.values.printable_text import hide_credentials, printable, printable_json
from afresh.web.guard import given_token, is_own_name, is_same_origin
from afresh.web.reports.version_diff import compare_texts

HOME = "http://a.test/"
_LONGEST_HEADER, _LONGEST_URL = 8190, 8000


def headers(data: bytes) -> None:
    """What answers say in their headers."""
    text = data[:_LONGEST_HEADER].decode("latin-1")
    remaining_quota(dict.fromkeys(("ratelimit", "ratelimit-policy", "x-ratelimit-remaining"), text), 0.0)
    remaining_quota({"ratelimit-remaining": "1", "ratelimit-reset": text, "ratelimit-limit": text}, 0.0)
    retry_after_s(text, 0.0)
    http_date_s(text)
    w3c_date_s(text)
    links_in_header(text)
    next_in_headers("header:Link", {"link": text})
    directives([text])
    decode(b"<p>caf\xe9", f"text/html; charset={text}")


def requests(data: bytes) -> None:
    """What requests to the dashboard and to webhooks say in their headers."""
    text = data[:_LONGEST_HEADER].decode("latin-1")
    for scheme in ("hex", "base64", "timestamp", "token"):
        is_signed(text, "secret", b"body", scheme)
    signed_time_s(text)
    given_token([f"Basic {text}"])
    is_own_name(text, frozenset())
    is_same_origin(text, text)


def addresses(data: bytes) -> None:
    for text in (data.decode("latin-1"), HOME + data.decode("utf-8", "replace"), f"{HOME}?{data!r}"):
        link = text[:_LONGEST_URL]
        for found in (resolve_link(HOME, link), normal_address(link)):
            if found is not None:
                without_dots(found)
                host_group(found)
                form_of(found)
                trap_of(found)
                next_address(HOME, found, ["key"])


def messages(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for one in (text, f"{HOME}?{text}", f"//{text}"):
        hide_credentials(one)
        display_url(one)
    printable(text)
    printable_json(text)


def characters(data: bytes) -> None:
    decode(data, "text/html")
    encoding_of(data[:2048])
    for charset in (b"utf-7", b"utf-16", b"gb2312", b"iso-2022-jp", b"hz"):
        decode(b"<meta charset=" + charset + b">" + data)


def deflate(data: bytes) -> None:
    for encoding in ("deflate", "x-gzip", "identity"):
        inflater = Inflater(encoding, max_bytes=50_000_000, max_ratio=200.0)
        with suppress(BadEncodingError, TooLargeError):
            for start in range(0, len(data), 1000):
                inflater.feed(data[start : start + 1000])
            inflater.finish()


def halves(data: bytes) -> tuple[bytes, bytes]:
    """Two versions of a copy. They differ in every second line, so that comparing them takes effort."""
    half = len(data) // 2
    one, lines = data[:half], data[:half].split(b"\n")
    return one, data[half:] + b"\n".join(line[:-1] if at % 2 else line for at, line in enumerate(lines))


def change_page(data: bytes) -> None:
    old, new = (half.decode("utf-8", "replace") for half in halves(data))
    compare_texts(old, new)


def line_diff(data: bytes) -> None:
    old, new = (half.decode("utf-8", "replace").splitlines() for half in halves(data))
    list(unified_lines(old, new))


def sizes_of_changes(data: bytes) -> None:
    new, old = halves(data)
    change_size(new, "text/html", old, "text/html")


def _objects(data: bytes) -> list[Any]:
    found = []
    for line in [data, *data.splitlines()[:100]]:
        with suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return found


def reports(data: bytes) -> None:
    """Polls that other programs report, as ``observe`` and the API read them."""
    text = data.decode("latin-1")
    rows = [
        {"item": "a", "time": text},
        {"item": "a", "content_base64": text},
        {"item": text, "changed": text},
    ]
    for given in [*rows, *_objects(data)]:
        with suppress(AfreshError):
            parse_report(given, 0.0)


def records(data: bytes) -> None:
    row_json([("a", data), ("b", data.decode("latin-1")), *(("c", each) for each in _objects(data))])


def archives(data: bytes) -> None:
    for read in (read_cdx, read_warc):
        for given in (data, b"t,a)/ 20240101000000 " + data, b"WARC/1.1\r\n" + data):
            with suppress(AfreshError):
                read(given, "given")


SMALL_TEXTS: Mapping[str, Callable[[bytes], Any]] = {
    "headers": headers,
    "requests": requests,
    "addresses": addresses,
    "messages": messages,
    "characters": characters,
    "deflate": deflate,
    "change page": change_page,
    "line diff": line_diff,
    "sizes of changes": sizes_of_changes,
    "reports": reports,
    "records": records,
    "archives": archives,
}
