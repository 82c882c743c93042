"""The watches of changedetection.io: ``url-watches.json``, or the backup that its web page makes."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from afresh.cli.engine.imports.filters import choose_selector
from afresh.cli.engine.imports.imported import ImportedItem, ImportedList
from afresh.values.errors import InputError

_SECONDS = {"weeks": 604800.0, "days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
_MOST_BYTES = 200_000_000
_LIST, _WATCH = "url-watches.json", "watch.json"
# What a watch may say and an item cannot; the settings of a source may be able to.
_ELSEWHERE = {
    "subtractive_selectors": "drop",
    "ignore_text": "ignore",
    "headers": "headers",
    "trigger_text": "",
    "text_should_not_be_present": "soft_errors",
    "extract_text": "",
    "body": "",
    "browser_steps": "",
    "webdriver_js_execute_code": "",
    "notification_urls": "notify",
    "proxy": "proxy",
}


def read_changedetection(content: bytes, name: str) -> ImportedList:
    """Read ``url-watches.json``. A time between checks that a watch has of its own is its longest polling
    interval; its CSS or XPath filters are its selector; paused watches are paused items."""
    try:
        watches = list(json.loads(content)["watching"].values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{name}: is not the {_LIST} of changedetection.io: no 'watching'") from None
    return _read(watches)


def read_backup(content: bytes, name: str) -> ImportedList:
    """Read a backup, a ZIP file: it holds ``url-watches.json`` or, of newer versions, a ``watch.json`` for
    each watch."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            lists = [one for one in archive.infolist() if one.filename.rpartition("/")[2] == _LIST]
            chosen = lists[:1] or [
                one for one in archive.infolist() if one.filename.rpartition("/")[2] == _WATCH
            ]
            if sum(one.file_size for one in chosen) > _MOST_BYTES:
                raise InputError(f"{name}: its lists have more than {_MOST_BYTES // 10**6} MB")
            texts = [archive.read(one) for one in chosen]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: is not a whole ZIP file: {error}") from None
    if not chosen:
        raise InputError(f"{name}: is not a backup of changedetection.io: no {_LIST} in it")
    if lists:
        return read_changedetection(texts[0], f"{name}, {lists[0].filename}")
    try:
        return _read([json.loads(text) for text in texts])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: a {_WATCH} in it is not JSON: {error}") from None


def _read(watches: Iterable[object]) -> ImportedList:
    items, skipped = list[ImportedItem](), list[str]()
    for watch in watches:
        if not isinstance(watch, dict):
            continue
        address = watch.get("url")
        if not isinstance(address, str) or not address.startswith(("http://", "https://")):
            skipped.append(f"{address!r}: not an address")
            continue
        filters = watch.get("include_filters") or watch.get("css_filter") or []
        selector, left = choose_selector(filters if isinstance(filters, list) else [filters])
        skipped += [f"{address}: {words}" for words in _left_words(left, watch)]
        own = {} if watch.get("time_between_check_use_default", False) else watch.get("time_between_check")
        items.append(
            ImportedItem(
                address,
                max_interval_s=_interval_s(own),
                selector=selector,
                is_paused=bool(watch.get("paused")),
            )
        )
    return ImportedList(tuple(items), skipped=tuple(skipped))


def _left_words(left: Iterable[str], watch: Mapping[str, Any]) -> list[str]:
    words = [f"its filter {text!r} is not taken over" for text in left]
    for name, setting in _ELSEWHERE.items():
        if watch.get(name):
            hint = f"; see the setting {setting} of a source" if setting else ""
            words.append(f"its {name} is not taken over{hint}")
    if "webdriver" in str(watch.get("fetch_backend")):
        words.append('it was rendered by a browser; see the setting render = "auto" of a source')
    return words


def _interval_s(parts: Any) -> float:
    if not isinstance(parts, dict):
        return float("inf")
    numbers = [(parts.get(name) or 0, scale) for name, scale in _SECONDS.items()]
    try:
        total_s = sum(float(value) * scale for value, scale in numbers if isinstance(value, int | float))
    except OverflowError:  # a number of hundreds of digits
        return float("inf")
    return total_s if total_s > 0 else float("inf")
