"""The kinds of source there are, and how one is made from its ``[[source]]`` table.

A kind from another package is one more entry of the table that ``make_source`` is given: whoever looks up
entry points passes ``{**BUILT_IN, **found}``.
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
    read_settings,
)
from afresh.sources.source import Source
from afresh.sources.sql_settings import SqlSettings
from afresh.sources.surroundings import Surroundings
from afresh.sources.view_settings import ViewSettings
from afresh.values.errors import one_of


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
    from afresh.sources.aiohttp_fetcher import AiohttpFetcher
    from afresh.sources.http_secrets import secret_proxy
    from afresh.sources.http_source import HttpSource

    proxy = secret_proxy(settings, around.resolver)
    fetcher = AiohttpFetcher(allow_private=settings.allow_private, proxy=proxy, clock=around.clock)
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


def make_source(
    table: Mapping[str, Any], around: Surroundings, kinds: Mapping[str, SourceKind[Any]] = BUILT_IN
) -> Source:
    """The source that a table of settings describes; wrong settings are refused in words.

    >>> make_source({"name": "web", "kind": "htpp"}, Surroundings())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown kind of source 'htpp': did you mean 'http'? One of ...
    """
    kind = kinds[one_of("kind of source", str(table.get("kind", "http")), kinds)]
    return kind.build(read_settings(kind.settings, table), around)
