"""The kinds of source there are, and how one is made from its ``[[source]]`` table.

A kind from another package is found by its entry point; ``engine.plugins`` shows both as one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic

from afresh.sources.search_settings import SearchSettings
from afresh.sources.settings import (
    HttpSettings,
    PythonSettings,
    Settings,
    SourceSettings,
)
from afresh.sources.source import Source
from afresh.sources.sql_settings import SqlSettings
from afresh.sources.surroundings import Surroundings
from afresh.sources.view_settings import ViewSettings


def _whole_source(settings: SourceSettings, key: str) -> str:
    """All items of a source are one group."""
    del key
    return settings.name


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[Settings]):
    """A kind of source: the model of its settings, what builds one from them, and which keys go together.

    ``group(settings, key)`` is the politeness group of an item, the same that the source itself would say;
    it refuses keys that could never be polled.
    """

    settings: type[Settings]
    build: Callable[[Settings, Surroundings], Source]
    group: Callable[[Settings, str], str] = _whole_source


def _http(settings: HttpSettings, around: Surroundings) -> Source:
    from afresh.sources.http_secrets import secret_proxy
    from afresh.sources.http_source import HttpSource

    proxy = secret_proxy(settings, around.resolver)
    fetcher = around.new_fetcher(settings.allow_private, proxy, around.clock)
    return HttpSource(settings, around, fetcher)


def _host(settings: HttpSettings, key: str) -> str:
    from afresh.sources.urls import host_group

    del settings
    return host_group(key)


def _python(settings: PythonSettings, around: Surroundings) -> Source:
    from afresh.sources.python_source import PythonSource

    return PythonSource(settings, around)


def _sql(settings: SqlSettings, around: Surroundings) -> Source:
    from afresh.sources.sql_source import SqlSource

    return SqlSource(settings, around)


def _search(settings: SearchSettings, around: Surroundings) -> Source:
    from afresh.sources.search_source import SearchSource

    return SearchSource(settings, around)


def _view(settings: ViewSettings, around: Surroundings) -> Source:
    from afresh.sources.view_source import ViewSource

    return ViewSource(settings, around)


BUILT_IN: Mapping[str, SourceKind[Any]] = MappingProxyType(
    {
        "http": SourceKind(HttpSettings, _http, _host),
        "python": SourceKind(PythonSettings, _python, lambda settings, _key: settings.call),
        "search": SourceKind(SearchSettings, _search),
        "sql": SourceKind(SqlSettings, _sql),
        "view": SourceKind(ViewSettings, _view),
    }
)
