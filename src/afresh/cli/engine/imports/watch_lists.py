"""The lists of changedetection.io (``url-watches.json``), urlwatch and webchanges (YAML)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from afresh.cli.engine.imports.imported import ImportedItem, ImportedList
from afresh.values.errors import InputError, UsageError

_SECONDS = {"weeks": 604800.0, "days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


def read_changedetection(content: bytes, name: str) -> ImportedList:
    """Read ``url-watches.json``. A time between checks that a watch has of its own is its longest polling
    interval; the first CSS filter is its selector; paused watches are paused items."""
    try:
        watching = json.loads(content)["watching"]
        watches = [watch for watch in watching.values() if isinstance(watch, dict)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{name}: is not the url-watches.json of changedetection.io: no 'watching'"
        ) from None
    items, skipped = [], []
    for watch in watches:
        address = watch.get("url")
        if not isinstance(address, str) or not address.startswith(("http://", "https://")):
            skipped.append(f"{address!r}: not an address")
            continue
        selector, problem = _selector(watch.get("include_filters") or watch.get("css_filter"))
        if problem:
            skipped.append(f"{address}: {problem}; added without it")
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


def read_urlwatch(content: bytes, name: str) -> ImportedList:
    """Read the jobs of urlwatch or webchanges. Jobs that run a command are left out."""
    if find_spec("yaml") is None:
        raise UsageError(f"--import {name}: YAML files need the package PyYAML: pip install pyyaml")
    yaml: Any = import_module("yaml")
    try:
        jobs = list(yaml.safe_load_all(content))
    except (yaml.YAMLError, RecursionError) as error:
        words = str(error).splitlines()[0] if str(error) else "unknown"
        raise InputError(f"{name}: is not YAML: {words}") from None
    items, skipped = [], []
    for number, job in enumerate(_flat(jobs), 1):
        address = job.get("url") or job.get("navigate")
        if not isinstance(address, str):
            skipped.append(f"job {number} ({job.get('name', 'without a name')}): has no url")
            continue
        selector, problem = _selector(_css_of(job.get("filter") or job.get("filters")))
        if problem:
            skipped.append(f"{address}: {problem}; added without it")
        items.append(ImportedItem(address, selector=selector, is_paused=job.get("enabled") is False))
    return ImportedList(tuple(items), skipped=tuple(skipped))


def _flat(jobs: list[Any]) -> Iterator[Mapping[str, Any]]:
    for job in jobs:
        if isinstance(job, dict):
            yield job
        elif isinstance(job, list):
            yield from (each for each in job if isinstance(each, dict))


def _css_of(filters: Any) -> Any:
    """Return the CSS selectors among the filters of a job, which have several forms."""
    found = []
    given = filters.split(",") if isinstance(filters, str) else filters
    for each in given if isinstance(given, list) else [given]:
        if isinstance(each, dict) and "css" in each:
            given = each["css"]
            found.append(given.get("selector") if isinstance(given, dict) else given)
        elif isinstance(each, str) and each.strip().startswith("css:"):
            found.append(each.strip().removeprefix("css:"))
        elif isinstance(each, dict) and "xpath" in each:
            found.append("xpath:")
    return found


def _selector(filters: Any) -> tuple[str, str]:
    """Return a tuple: the CSS selector of these filters, and why others are left out."""
    from afresh.sources.change_detection import Recipe

    given = filters if isinstance(filters, list) else [filters]
    texts = [text.strip() for text in given if isinstance(text, str) and text.strip()]
    css = [text for text in texts if not text.startswith(("/", "xpath", "json:", "jq", "(", "re:"))]
    left = len(texts) - len(css)
    selector = ", ".join(css)
    try:
        Recipe().for_item(selector)
    except UsageError:
        return "", f"filter {selector!r} is no CSS selector"
    return selector, f"{left} filters are no CSS selectors" if left else ""


def _interval_s(parts: Any) -> float:
    if not isinstance(parts, dict):
        return float("inf")
    numbers = [(parts.get(name) or 0, scale) for name, scale in _SECONDS.items()]
    try:
        total_s = sum(float(value) * scale for value, scale in numbers if isinstance(value, int | float))
    except OverflowError:  # a number of hundreds of digits
        return float("inf")
    return total_s if total_s > 0 else float("inf")
