"""The jobs of urlwatch and webchanges, which are YAML files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from afresh.cli.engine.imports.filters import choose_selector
from afresh.cli.engine.imports.imported import ImportedItem, ImportedList
from afresh.values.errors import InputError, UsageError

# Filters that only make a page readable; the settings text_only and main_text of a source do as much.
_READABLE = frozenset(
    {"html2text", "strip", "strip_lines", "beautify", "format-json", "pretty-xml", "re.sub"}
)
_BY_ELEMENT = {"element-by-id": "#{}", "element-by-class": ".{}", "element-by-tag": "{}"}
_IN_BROWSER = ("navigate", "use_browser")
_ELSEWHERE = ("headers", "cookies", "data", "method", "http_proxy", "https_proxy")


def check_yaml(name: str) -> None:
    """Raise ``UsageError`` if the package that reads YAML is not installed."""
    if find_spec("yaml") is None:
        raise UsageError(f"--import {name}: YAML files need the package PyYAML: pip install pyyaml")


def read_urlwatch(content: bytes, name: str) -> ImportedList:
    """Read the jobs of urlwatch or webchanges. Jobs that run a command are left out."""
    yaml: Any = import_module("yaml")
    try:
        jobs = list(yaml.safe_load_all(content))
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # also dates and numbers that are none
        words = str(error).splitlines()[0] if str(error) else "unknown"
        raise InputError(f"{name}: is not YAML: {words}") from None
    items, skipped = list[ImportedItem](), list[str]()
    for number, job in enumerate(_flat(jobs), 1):
        address = job.get("url") or job.get("navigate")
        if not isinstance(address, str):
            name_of_job = job.get("name")  # anything: aliases may make it endlessly large
            words = name_of_job if isinstance(name_of_job, str) else "without a name"
            skipped.append(f"job {number} ({words}): has no url")
            continue
        parts, others = _filters_of(job.get("filter") or job.get("filters"))
        selector, left = choose_selector(parts)
        skipped += [f"{address}: {words}" for words in _left_words([*others, *left], job)]
        items.append(ImportedItem(address, selector=selector, is_paused=job.get("enabled") is False))
    return ImportedList(tuple(items), skipped=tuple(skipped))


def _flat(jobs: list[Any]) -> Iterator[Mapping[str, Any]]:
    for job in jobs:
        if isinstance(job, dict):
            yield job
        elif isinstance(job, list):
            yield from (each for each in job if isinstance(each, dict))


def _filters_of(filters: Any) -> tuple[list[str], list[str]]:
    """Return the selectors among the filters of a job, which have several forms, and the names of others."""
    found, others = list[str](), list[str]()
    for name, given in _named_filters(filters):
        key = {"css": "selector", "xpath": "path"}.get(name, name.rpartition("-")[2])
        value = given.get(key) if isinstance(given, dict) else given
        if name in ("css", "xpath") and isinstance(value, str):
            found.append(value.strip() if name == "css" else f"xpath:{value.strip()}")
        elif name in _BY_ELEMENT and isinstance(value, str):
            found.append(_BY_ELEMENT[name].format(value.strip()))
        elif name not in _READABLE:
            others.append(name)
    return found, others


def _named_filters(filters: Any) -> Iterator[tuple[str, Any]]:
    """Yield tuples (name, value) of filters that are written as ``a:x,b``, as a list, or as a mapping."""
    given = filters.split(",") if isinstance(filters, str) else filters
    for each in given if isinstance(given, list) else [given]:
        if isinstance(each, dict):
            yield from ((str(name), value) for name, value in each.items())
        elif isinstance(each, str) and each.strip():
            name, _, value = each.strip().partition(":")
            yield name.strip(), value


def _left_words(filters: Sequence[str], job: Mapping[str, Any]) -> list[str]:
    words = [f"its filter {text!r} is not taken over" for text in filters]
    words += [
        f"its {name} is not taken over; see the settings of a source" for name in _ELSEWHERE if job.get(name)
    ]
    if any(job.get(name) for name in _IN_BROWSER):
        words.append('it was rendered by a browser; see the setting render = "auto" of a source')
    return words
